package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// catalog makes sure of topics, and of how many of their partitions are written to, and looks for records of other
// clusters in them.
//
// Topics that nobody has named are chosen by data: by an object's label, namespace or name, or by a definition that a
// wildcard stands for, which is one of Options.Found in the next life. Whoever may make such objects must not be able
// to end the sink: what speaks against the topic is held against the messages alone.
type catalog struct {
	*brokers
	known    *known
	told     map[string]int // by topic: how many partitions it was told to have
	warned   string         // of topics that are not as configured
	replaced []string       // topics whose keys are to end when the sink is opened: they have another schema's id now, or nobody knows them
	// unfamiliar is that it was told of a table that no mark has
	unfamiliar bool

	mu     sync.Mutex           // guards the following
	shut   map[string]objection // topics that cannot be written to
	making map[string]bool      // those that this sink has made because data chose them
	full   bool                 // it was told that no more are made
}

// defaultLimit is Kafka's default of max.message.bytes, for topics whose settings must not be read.
const defaultLimit = 1048588

// examineAll looks at the topics that are known beforehand, and at those that the mark or the sink know besides, if
// they still exist: a topic that nothing is configured to write to may be deleted.
func (c *catalog) examineAll(ctx context.Context, want *mark) ([]*topic, error) {
	names := slices.AppendSeq(slices.Clone(c.options.Topics), maps.Keys(c.known.topics))
	names = slices.AppendSeq(names, maps.Keys(want.Topics))
	slices.Sort(names)
	names = slices.Compact(names)
	var mu sync.Mutex
	var found []*topic
	err := together(ctx, c.tuning.parallel, names, func(ctx context.Context, name string) error {
		return c.persist(ctx, "open topic "+name, func(ctx context.Context) error {
			t, err := c.ensure(ctx, name, c.isForetold(name))
			if c.isChosen(name) && refusesTopic(err) { // it is not ours to write to
				c.shun(name, wire.Explain(err))
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			if t != nil {
				found = append(found, t)
			}
			return err
		})
	})
	slices.SortFunc(found, byName)
	for _, t := range found {
		c.keep(t, want)
	}
	return found, err
}

// of is the topic of the name. One that is none of Options.Topics is made or looked up now, or speaks against its
// messages.
func (c *catalog) of(ctx context.Context, name string) (*topic, *sink.RejectedError, error) {
	if t := c.known.topics[name]; t != nil {
		return t, nil, nil
	}
	if err := validTopic(name); err != nil {
		return nil, &sink.RejectedError{Reason: "invalid", Err: err, NoPlace: true}, nil
	}
	if no := c.refusal(name); no != nil {
		return nil, no, nil
	}
	t, err := c.find(ctx, name)
	switch {
	case refusesTopic(err) && c.isChosen(name):
		return nil, c.shun(name, err), nil
	case err != nil:
		return nil, nil, err
	}
	c.known.topics[name] = t
	c.options.Made(c.known.made())
	return t, nil, nil
}

// find makes sure of a topic that was not known when the sink was opened.
func (c *catalog) find(ctx context.Context, name string) (t *topic, err error) {
	err = c.persist(ctx, "open topic "+name, func(ctx context.Context) error {
		if t, err = c.ensure(ctx, name, true); err != nil {
			return err
		}
		return c.locate(ctx, t)
	})
	if err == nil {
		err = c.inspectAll(ctx, t)
	}
	if err != nil || !t.compacted || c.options.Changed == nil {
		return t, err
	}
	old, err := c.unknown(ctx, []string{name})
	if len(old) > 0 {
		c.known.topics[name] = t
		c.replaced = append(c.replaced, name)
		err = reopen("write to topic %s: no state knows what is in it: open the sink again, to end its keys", name)
	}
	return t, err
}

// ensure makes sure that a topic may be written to, and is there, unless that is not needed, and returns what is known
// of it.
func (c *catalog) ensure(ctx context.Context, name string, needed bool) (*topic, error) {
	if err := c.options.reserved(name); err != nil {
		return nil, err
	}
	found, err := c.cluster.Topic(ctx, name)
	if wire.Code(err) == kerr.UnknownTopicOrPartition.Code {
		if !needed {
			return nil, nil
		}
		if err := c.create(ctx, name); err != nil {
			return nil, err
		}
		found, err = c.cluster.Topic(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	settings, err := c.settings(ctx, name)
	if err == nil {
		err = c.fits(found, settings)
	}
	if err != nil {
		return nil, err
	}
	t := newTopic(found, settings)
	if !c.isChosen(name) {
		t.misfits = c.options.misfits(found, settings)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.made = c.making[name]
	return t, nil
}

// unknown are the tables in which something of ours is alive although no mark has them: after a lost volume, or of a
// sink of another name. Another exporter may keep it there, so nothing of it ends unless new keys are accepted.
func (c *catalog) unknown(ctx context.Context, tables []string) ([]string, error) {
	alive, found := []string(nil), errors.New("something is alive")
	f := newFetcher(c.brokers, sink.Start{})
	for _, name := range tables {
		partitions, err := f.stretches(ctx, name)
		for i := 0; i < len(partitions) && err == nil; i++ {
			err = f.living(ctx, partitions[i], func([]string) error { return found })
		}
		switch {
		case errors.Is(err, found):
			alive = append(alive, name)
		case err != nil && wire.Code(err) != kerr.TopicAuthorizationFailed.Code:
			return nil, err
		}
	}
	if len(alive) == 0 || c.options.AcceptNewKeys {
		return alive, nil
	}
	if !c.unfamiliar {
		c.unfamiliar = true
		c.options.Warn(fmt.Sprintf("topic %s is a table, and no state knows what is in it: objects that were deleted meanwhile, or have other keys now, stay there for ever: "+
			"name another topic, or start once with --accept-new-keys, which ends all keys that are in it and sends everything again", alive[0]))
	}
	return nil, nil
}

// create makes a topic, where that is allowed.
func (c *catalog) create(ctx context.Context, name string) error {
	if !c.options.Create {
		return missing("open", name)
	}
	spec := c.options.spec(name)
	if err := c.options.keepsAll(name, spec.Configs[cleanupPolicy]); err != nil {
		return err
	}
	if err := c.admit(name); err != nil {
		return err
	}
	return c.cluster.Create(ctx, spec)
}

// settings are Kafka's defaults where they must not be read.
func (c *catalog) settings(ctx context.Context, name string) (wire.Settings, error) {
	settings, err := c.cluster.Settings(ctx, name)
	if wire.Code(err) == kerr.TopicAuthorizationFailed.Code {
		return wire.Settings{MaxMessageBytes: defaultLimit}, nil
	}
	return settings, err
}

// fits finds a topic that must not be written to, that can never give the acknowledgement that is asked for, that would
// forget what is needed, or in which messages have no order.
func (c *catalog) fits(known wire.Topic, settings wire.Settings) error {
	if known.Operations.Lacks(wire.Write) {
		return topicPermanent("write to topic %s: the user is not permitted: grant WRITE on topic %s", known.Name, known.Name)
	}
	problems := []error{c.options.keepsAll(known.Name, settings.Values[cleanupPolicy])}
	for _, p := range known.Partitions {
		if have, need := len(p.Replicas), settings.MinInsyncReplicas; have > 0 && have < need {
			problems = append(problems, topicPermanent("open topic %s: partition %d has %d replicas, and min.insync.replicas is %d, so no record can be acknowledged: "+
				"lower min.insync.replicas of the topic, or give it more replicas", known.Name, p.Partition, have, need))
			break
		}
	}
	switch policy := settings.Values[cleanupPolicy]; {
	case !c.options.Whole:
	case len(known.Partitions) != 1:
		problems = append(problems, topicPermanent("open topic %s: it has %d partitions, and needs to have 1: make another one, or let the exporter make it",
			known.Name, len(known.Partitions)))
	case policy != "" && policy != "compact":
		problems = append(problems, topicPermanent("open topic %s: its cleanup.policy is %s, so it would lose what is not written again: set compact", known.Name, policy))
	}
	return errors.Join(problems...)
}

// keep takes as many of the topic's partitions as it was written with from the start, as the mark says, or what this
// sink knows of it. Were keys spread over partitions that were added later, an object would go on in another one,
// after its older states for nobody, and its tombstones would not reach them. Nothing is kept of a topic that was made
// again.
func (c *catalog) keep(t *topic, want *mark) {
	n := 0
	if known := c.known.topics[t.name]; known != nil && known.id == t.id {
		n, t.made, t.schema, t.byKey = len(known.partitions), t.made || known.made, known.schema, known.byKey
	}
	marked := want.Topics[t.name]
	if !want.isNone() && (marked.ID == t.id || marked.ID == "" || t.id == "") {
		t.made, t.schema, t.byKey = t.made || marked.Made, marked.Schema, marked.ByKey
		n = cmp.Or(len(marked.Next), n)
	}
	c.grown(t, len(t.partitions), n)
	if n > 0 && n < len(t.partitions) {
		t.partitions = t.partitions[:n:n]
	}
}

// grown tells once that partitions were added, which stay empty.
func (c *catalog) grown(t *topic, have, used int) {
	if used == 0 || have <= used || c.told[t.name] == have {
		return
	}
	c.told[t.name] = have
	c.options.Notice(fmt.Sprintf("keeps to the first %d of the %d partitions of topic %s, those that it began with, since objects that moved to others would lose their order and their tombstones: "+
		"docs/kafka.md says how to use them all", used, have, t.name))
}

// warn tells once of topics that are not as configured.
func (c *catalog) warn(found []*topic) {
	all := &notes{}
	for _, t := range found {
		for _, text := range t.misfits {
			all.add("%s %s", t.name, text)
		}
	}
	if text := all.String(); text != "" && text != c.warned {
		c.warned = text
		c.options.Warn(text)
	}
}

// sameSchema refuses a key in a compacted topic that begins with another schema's id than those before, since the
// registry is another one: it is another key. Where new keys are accepted, the sink is opened again, and ends the old
// ones.
func (c *catalog) sameSchema(t *topic, m *sink.Message) error {
	if m.KeySchema == t.schema || m.KeySchema == 0 || !t.compacted {
		return nil
	}
	if t.schema == 0 {
		t.schema = m.KeySchema
		return nil
	}
	changed := otherID(m.KeySchema, t.schema)
	if !c.options.AcceptNewKeys {
		return newKeys(t.name, changed)
	}
	c.replaced = append(c.replaced, t.name)
	return reopen("write to topic %s: %s: open the sink again, to end the old keys", t.name, changed)
}

func otherID(now, before uint32) string {
	return fmt.Sprintf("the schema registry has id %d for its keys now, which was %d", now, before)
}

// CheckKey says what stands against keys that begin with the schema's id, in those topics of the mark that are named by
// leads. Where it is 0, they do not, or it is not known.
func CheckKey(at sink.Mark, id uint32, leads func(topic string) bool) error {
	want, err := parseMark(at)
	if err != nil || id == 0 {
		return err
	}
	for name, had := range want.Topics {
		if had.Schema != 0 && had.Schema != id && leads(name) {
			return newKeys(name, otherID(id, had.Schema))
		}
	}
	return nil
}

// lastRecords is how far before its end a log is looked into. Markers and batches that compaction emptied count.
const lastRecords = 200

// objection is why a topic cannot be written to, and since when that is known.
type objection struct {
	refusal *sink.RejectedError
	since   time.Time
}

// mostClosed bounds how many of them are remembered.
const mostClosed = 1000

// isChosen says whether data chose the topic.
func (c *catalog) isChosen(name string) bool {
	return !c.isForetold(name) || slices.Contains(c.options.Found, name)
}

// isForetold says whether Open makes the topic, which does not count as one of a label.
func (c *catalog) isForetold(name string) bool { return slices.Contains(c.options.Topics, name) }

// shun remembers what speaks against a topic, for a moment: looking again costs some requests.
func (c *catalog) shun(name string, err error) *sink.RejectedError {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.shut) >= mostClosed {
		clear(c.shut)
	}
	c.shut[name] = objection{&sink.RejectedError{Reason: "topic", Err: err, NoPlace: true}, c.now()}
	return c.shut[name].refusal
}

// refusal is what speaks against a topic, nil where nothing is known.
func (c *catalog) refusal(name string) *sink.RejectedError {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now().Sub(c.shut[name].since) > c.tuning.closed {
		return nil
	}
	return c.shut[name].refusal
}

// forbidden turns an error of a request about a topic that data chose into one that Open answers: the next Write
// rejects what is meant for the topic. Other errors stay as they are.
func (c *catalog) forbidden(name string, err error) error {
	if err == nil || name == "" || !refusesTopic(err) || !c.isChosen(name) {
		return err
	}
	c.shun(name, err)
	return reopen("%v: open the sink again", err) // not wrapped: it is not permanent
}

// admit says whether one more topic may be made because data chose it.
func (c *catalog) admit(name string) error {
	if c.isForetold(name) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	most := c.options.LabelTopics
	if most == 0 || c.known.made() < most {
		c.making[name] = true
		return nil
	}
	if !c.full {
		c.full = true
		c.options.Notice(fmt.Sprintf("has created %d topics for labels and names, as many as kafka.labelTopics allows: records for further topics become dead letters", most))
	}
	return topicPermanent("open topic %s: it does not exist, and labels and names have made %d topics already: create it, or raise kafka.labelTopics", name, most)
}

// inspect looks for records of another cluster in topics that are about to be written to: after the mark, or, where it
// does not have the topic, at both ends of each partition. It returns the topics without those that data chose and that
// are not ours to write to.
func (c *catalog) inspect(ctx context.Context, topics []*topic, want *mark) ([]*topic, error) {
	var mu sync.Mutex
	refused := map[*topic]error{}
	err := together(ctx, c.tuning.readers, partitionsOf(topics), func(ctx context.Context, p *partition) error {
		err := c.inspectPartition(ctx, p, span{max(p.first, want.from(p.topic.name, p.number)), p.next})
		if refusesTopic(err) && c.isChosen(p.topic.name) {
			mu.Lock()
			defer mu.Unlock()
			refused[p.topic], err = err, nil
		}
		return err
	})
	for t, err := range refused {
		c.shun(t.name, err)
	}
	return slices.DeleteFunc(topics, func(t *topic) bool { return refused[t] != nil }), err
}

// inspectAll looks at both ends of each of the topic's partitions.
func (c *catalog) inspectAll(ctx context.Context, t *topic) error {
	for _, p := range t.partitions {
		if err := c.inspectPartition(ctx, p, span{p.first, p.next}); err != nil {
			return err
		}
	}
	return nil
}

// inspectOthers looks at what was put into the partitions beside what this sink has written. So two clusters that begin
// at the same moment, when neither could see the other, find each other with their first records. A topic that is
// shared rightly is looked at less and less often.
func (c *catalog) inspectOthers(ctx context.Context, partitions []*partition) error {
	for _, p := range partitions {
		if p.others.to == 0 || c.now().Before(p.inspect) {
			continue
		}
		if err := c.inspectPartition(ctx, p, p.others); err != nil {
			return c.forbidden(p.topic.name, err)
		}
		p.wait = min(max(2*p.wait, time.Millisecond), c.tuning.look)
		p.inspect = c.now().Add(p.wait)
	}
	return nil
}

// inspectPartition looks at both ends of a piece of a log: at what one fetch brings. What is not committed yet is
// looked at later, as what others write is. What must not be read is not looked at, and what is damaged is found by
// whoever reads the tail.
func (c *catalog) inspectPartition(ctx context.Context, p *partition, of span) error {
	if c.options.Judge == nil || of.from >= of.to {
		return nil
	}
	p.others = span{}
	f := newFetcher(c.brokers, sink.Start{})
	last := max(of.from, of.to-lastRecords)
	for _, offset := range slices.Compact([]int64{of.from, last}) {
		piece, result := f.pieceOf(p, offset), wire.FetchResult{}
		err := c.persist(ctx, "read "+p.String(), func(ctx context.Context) (err error) {
			at := wire.FetchRequest{Topic: p.topic.name, Partition: p.number, Offset: offset, MaxBytes: c.tuning.fetch}
			result, err = c.cluster.Fetch(ctx, at)
			return err
		})
		if code := wire.Code(err); code == kerr.TopicAuthorizationFailed.Code || code == kerr.OffsetOutOfRange.Code {
			continue
		}
		if err == nil {
			err = f.take(piece, &result, func(e *batch.Entry) error {
				if e.Offset < offset {
					return nil
				}
				return c.judge(p, e)
			})
		}
		if err != nil && !errors.As(err, new(*unreadableError)) {
			return err
		}
		if undecided := len(result.RecordBatches) == 0 || offset == last && piece.offset < of.to; undecided && p.others.to == 0 {
			p.others = span{piece.offset, of.to}
		}
	}
	return nil
}

// judge looks at one record.
func (c *catalog) judge(p *partition, e *batch.Entry) error {
	m := storedOf(p.topic.name, p.number, e)
	if m.Header(sink.HeaderOp) == sink.OpState {
		return topicPermanent("open topic %s: it holds the saved state of an exporter, and records would destroy that: choose another kafka.topic", p.topic.name)
	}
	var foreign *sink.ForeignError
	switch {
	case !errors.As(c.options.Judge(m), &foreign):
		return nil
	case foreign.Same: // that two have one name is nothing that data could bring about, whoever chose the topic
		return sink.Permanent("open topic %s: %w", p.topic.name, foreign)
	case p.topic.compacted: // two clusters share keys there, whatever their names
		return topicPermanent("open topic %s: %w: the topic is compacted, and keys do not name the cluster, so each would delete the other's objects: "+
			"put {cluster} into kafka.topic", p.topic.name, foreign)
	}
	return nil
}
