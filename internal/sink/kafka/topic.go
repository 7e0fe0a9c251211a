package kafka

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// plan is one batch of the contract, sorted by partition. Its partitions are written side by side. What proves to a
// reader of the log that something else is there waits until that is durable: it goes in a later step.
type plan struct {
	messages []sink.Message
	touched  []*partition // each has the indexes of its messages, and the step that each is sent in
	steps    int
	floor    int              // the first step that the next message may be in
	last     map[string]place // by object: where its last message goes; nil is that no message waits
}

// place is where a message goes, and in which step.
type place struct {
	partition *partition
	step      int
}

// part is what of the partition's messages a step sends.
func (p *plan) part(step int, of *partition) []int32 {
	from, _ := slices.BinarySearch(of.steps, int32(step))
	until, _ := slices.BinarySearch(of.steps, int32(step+1))
	return of.indexes[from:until]
}

// add adds an atom to the partition.
func (p *plan) add(to *partition, from, end int) {
	step := p.step(&p.messages[from], to)
	for i := from; i < end; i++ {
		to.indexes, to.steps = append(to.indexes, int32(i)), append(to.steps, int32(step))
	}
	p.steps = max(p.steps, step+1)
}

// The operations that matter here, as texts of package change.
const (
	isGap      = "gap"
	isActor    = "actor"
	isResolved = "resolved"
)

// namedByHash is in the id of a note of which nobody can tell whose it is (change.ShorterNote).
const namedByHash = "/%25sha256-"

// step is the step that the message, which goes to the partition, is sent in.
func (p *plan) step(m *sink.Message, to *partition) int {
	if p.last == nil {
		return 0
	}
	step := p.floor
	if n := len(to.steps); n > 0 {
		step = max(step, int(to.steps[n-1]))
	}
	object := m.Object()
	switch {
	case m.Op == isActor:
	case m.Op == isGap && strings.Contains(m.ID, namedByHash):
		step = p.steps
		p.floor = step + 1
	case strings.HasSuffix(object, "//"): // a frame
		step = max(step, p.behind(object, to))
	default:
		if before, found := p.last[object]; found && before.partition != to {
			step = max(step, before.step+1)
		}
		p.last[object] = place{to, step}
	}
	return step
}

// behind is the first step after all that the other partitions get of the frame's resource. A consumer that finds the
// end of a snapshot then finds the snapshot, in whatever topics. A gap and the begin of a snapshot move the sink's
// position, so recovery asks for nothing older.
func (p *plan) behind(frame string, to *partition) (step int) {
	resource := frame[:strings.IndexByte(frame, '/')+1]
	for _, of := range p.touched {
		for i := len(of.indexes) - 1; i >= 0 && of != to; i-- {
			if strings.HasPrefix(p.messages[of.indexes[i]].Object(), resource) {
				step = max(step, int(of.steps[i])+1)
				break
			}
		}
	}
	return step
}

// mark is a place in each of the topics. A topic or a partition that it does not have was not there when it was made,
// so all that is in it came later.
type mark struct {
	Topics map[string]topicMark `json:"kafka"`
	Form   json.RawMessage      `json:"form,omitempty"` // of topics and keys; nil is that of an earlier version
}

// topicMark has the offset of the next record, by partition.
type topicMark struct {
	ID   string `json:"id,omitempty"`   // Kafka's (KIP-516): a topic that is made again has another one
	Made bool   `json:"made,omitempty"` // by the sink, because data chose it
	// of as many partitions as are written to: those that are added later are left alone
	Next []int64 `json:"next"`
	// Schema is what keys begin with, where the topic is compacted and they have one.
	Schema uint32 `json:"schema,omitempty"`
	ByKey  bool   `json:"byKey,omitempty"` // keys with a schema choose the partition by all their bytes
}

// isNone says whether nothing was written yet.
func (m *mark) isNone() bool { return m.Topics == nil }

func (m *mark) text() sink.Mark {
	text, _ := json.Marshal(m) // of numbers, texts and JSON it cannot fail
	return sink.Mark(text)
}

// parseMark is the inverse of text.
func parseMark(text sink.Mark) (*mark, error) {
	var m mark
	if text == "" {
		return &m, nil
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil || m.Topics == nil {
		return nil, sink.Permanent("read mark %.200q: not a place in topics: the saved state belongs to another kind of sink", text)
	}
	for name, t := range m.Topics {
		t.ByKey = t.ByKey || len(m.Form) == 0
		m.Topics[name] = t
	}
	return &m, nil
}

// from is where the tail of a partition begins.
func (m *mark) from(name string, partition int32) int64 {
	if next := m.Topics[name].Next; int(partition) < len(next) {
		return next[partition]
	}
	return 0
}

// withTopics adds to the mark those of the topics that it does not have.
func withTopics(at sink.Mark, topics []*topic) (sink.Mark, error) {
	m, err := parseMark(at)
	if err != nil || m.isNone() {
		return at, err
	}
	for _, t := range topics {
		if _, has := m.Topics[t.name]; !has {
			m.Topics[t.name] = t.mark()
		}
	}
	return m.text(), nil
}

// MarkWith is the mark with those topics of another exporter's that this one is to write to from now on. That of a sink
// that never wrote begins with them.
func MarkWith(at, given sink.Mark, takes func(topic string) bool) (sink.Mark, error) {
	m, err := parseMark(at)
	if err != nil {
		return at, err
	}
	theirs, err := parseMark(given)
	if err != nil {
		return at, err
	}
	if m.isNone() {
		m.Topics, m.Form = map[string]topicMark{}, theirs.Form
	}
	for name, topic := range theirs.Topics {
		if takes(name) {
			m.Topics[name] = topic
		}
	}
	if len(m.Topics) == 0 {
		return at, nil
	}
	return m.text(), nil
}

// mark is the topic's part of one.
func (t *topic) mark() topicMark {
	m := topicMark{ID: t.id, Made: t.made, Next: make([]int64, len(t.partitions)), Schema: t.schema, ByKey: t.byKey}
	for i, p := range t.partitions {
		m.Next[i] = p.next
	}
	return m
}

// known are the topics that the mark has.
type known struct {
	topics    map[string]*topic
	announced map[string]bool // those that the next Open reads, whatever becomes of this life
	form      []byte
}

// partitions are those of all topics, in the order of their names.
func (k *known) partitions() []*partition {
	return partitionsOf(slices.SortedFunc(maps.Values(k.topics), byName))
}

func byName(a, b *topic) int { return strings.Compare(a.name, b.name) }

// made is how many topics were made because data chose them.
func (k *known) made() (n int) {
	for _, t := range k.topics {
		if t.made {
			n++
		}
	}
	return n
}

// mark is the place after all that is durable.
func (k *known) mark() sink.Mark {
	m := mark{Topics: make(map[string]topicMark, len(k.topics)), Form: k.form}
	for name, t := range k.topics {
		m.Topics[name] = t.mark()
	}
	return m.text()
}

// topic is what the sink knows of a topic.
type topic struct {
	name       string
	id         string // Kafka's, "" if it is not known
	limit      atomic.Int64
	partitions []*partition // those that are written to
	fenced     bool         // nobody who opened before can write to it any more
	made       bool         // by this sink, because data chose it
	compacted  bool
	byKey      bool     // keys with a schema choose the partition by all their bytes, as they did when it was begun
	schema     uint32   // that keys begin with; 0 is that none was written, or that nobody asks
	misfits    []string // in what it differs from what is configured
}

// partition is one log. A goroutine of Write has it for itself.
type partition struct {
	topic    *topic
	number   int32
	first    int64 // of the log, when it was looked at
	next     int64 // the offset after what is known to be in the log
	sequence int32 // of the next batch
	frozen   *frozen
	others   span          // in which somebody else has written, and nobody has looked; zero is none
	inspect  time.Time     // when to look at the next
	wait     time.Duration // from the last look until then
	indexes  []int32       // of the messages of this Write
	steps    []int32       // of the Write, in which each is sent
	turn     uint64        // the Write that the indexes are of
}

// frozen is a batch that was encoded and is not acknowledged. It may be in the log, or on its way there, so it must not
// change any more.
type frozen struct {
	bytes []byte
	count int
	since time.Time
	sent  int // how often
}

// String names the partition in messages.
func (p *partition) String() string {
	return fmt.Sprintf("topic %s partition %d", p.topic.name, p.number)
}

// span is offsets of a partition.
type span struct{ from, to int64 }

// strange notes what is in the partition after what the sink knew of it, and that it has not written. So many markers
// are expected there.
func (p *partition) strange(from, to, markers int64) {
	if to-from <= markers {
		return
	}
	if p.others.to == 0 {
		p.others.from = from
	}
	p.others.to = to
}

func newTopic(described wire.Topic, settings wire.Settings) *topic {
	t := &topic{name: described.Name, id: described.ID, compacted: compacts(settings.Values[cleanupPolicy])}
	t.limit.Store(int64(settings.MaxMessageBytes))
	for i := range described.Partitions {
		t.partitions = append(t.partitions, &partition{topic: t, number: int32(i)})
	}
	return t
}

// partitionsOf are where the message belongs: one, but that whoever reads a partition wants to know what is resolved.
// One without a key belongs where the empty key does.
func (t *topic) partitionsOf(m *sink.Message) []*partition {
	if m.Op == isResolved {
		return t.partitions
	}
	by := m.Key
	if m.Partition != nil && (m.KeySchema == 0 || !t.byKey) {
		by = m.Partition
	}
	at := batch.Partition(by, len(t.partitions))
	return t.partitions[at : at+1]
}

// partitionsOf are those of all the topics, in their order.
func partitionsOf(topics []*topic) (all []*partition) {
	for _, t := range topics {
		all = append(all, t.partitions...)
	}
	return all
}

// shrink keeps what a refusal has shown of max.message.bytes.
func (t *topic) shrink(refused int) {
	for {
		have := t.limit.Load()
		if int64(refused) > have || t.limit.CompareAndSwap(have, int64(refused)-1) {
			return
		}
	}
}
