package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

var (
	_ sink.Sink      = (*Sink)(nil)
	_ sink.Rereader  = (*Sink)(nil)
	_ sink.Announcer = (*Sink)(nil)
)

// Sink writes into topics. See sink.Sink for what its methods promise.
type Sink struct {
	*brokers
	*known
	catalog *catalog
	right   *right
	sender  *sender
	opened  bool        // Write may be called
	unread  atomic.Bool // it was told that reading is not permitted
	giving  sync.Mutex  // one goroutine gives ids at a time, to who may save what they say
}

// New checks the options and returns a sink that is not open.
func New(options Options) (*Sink, error) {
	problems := options.complete()
	encoders, noCodec := newEncoders(options.Compression)
	b, noWay := newBrokers(&options)
	if err := errors.Join(problems, noCodec, noWay); err != nil {
		return nil, fmt.Errorf("configure kafka sink: %w", err)
	}
	k := &known{topics: map[string]*topic{}}
	topics := &catalog{brokers: b, known: k, told: map[string]int{}, shut: map[string]objection{}, making: map[string]bool{}}
	writer := &right{brokers: b, known: k, producer: wire.NoProducer(), owner: wire.NoProducer()}
	return &Sink{brokers: b, known: k, catalog: topics, right: writer, sender: &sender{
		brokers: b, known: k, catalog: topics, right: writer, encoders: encoders, refused: map[string]*sink.RejectedError{}, last: map[string]place{},
	}}, nil
}

// Write is as in sink.Sink. Any error but a rejection closes the sink.
func (s *Sink) Write(ctx context.Context, messages []sink.Message) (sink.Mark, error) {
	if !s.opened {
		return "", errors.New("write to kafka: the sink is not open: open it")
	}
	if ctx.Err() != nil {
		return "", sink.Ended(ctx, "write to kafka", nil)
	}
	plan, rejected, err := s.sender.plan(ctx, messages)
	if rejected != nil && s.raised(ctx, &messages[rejected.Index]) {
		plan, rejected, err = s.sender.plan(ctx, messages)
	}
	if err == nil {
		err = s.deliver(ctx, plan)
	}
	switch {
	case err != nil:
		s.opened = false
		return "", err
	case rejected != nil:
		delete(s.sender.refused, messages[rejected.Index].ID) // told
		return s.mark(), rejected
	}
	return s.mark(), nil
}

// Announce is as in sink.Announcer. The places are topics that data chose.
func (s *Sink) Announce(ctx context.Context, messages []sink.Message) (add func(sink.Mark) (sink.Mark, error), err error) {
	var found []*topic
	for i := range messages {
		name := messages[i].Destination
		if s.announced[name] || !s.opened {
			continue
		}
		t, _, err := s.catalog.of(ctx, name)
		if err != nil {
			s.opened = false
			return nil, err
		}
		if t != nil {
			found = append(found, t)
			s.announced[name] = true
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	return func(at sink.Mark) (sink.Mark, error) { return withTopics(at, found) }, nil
}

// raised reads the limit of the topic anew that the message is too large for, and says whether somebody has raised it.
// Where no broker answers, or the settings must not be read, it stays as it is until the sink is opened again.
func (s *Sink) raised(ctx context.Context, m *sink.Message) bool {
	t := s.topics[m.Destination]
	if t == nil || s.sender.refused[m.ID] != nil {
		return false
	}
	settings, err := s.cluster.Settings(ctx, t.name)
	limit := int64(settings.MaxMessageBytes)
	if err != nil || limit <= t.limit.Load() {
		return false
	}
	t.limit.Store(limit)
	return true
}

// deliver makes the planned messages durable (I1).
func (s *Sink) deliver(ctx context.Context, p plan) error {
	if len(p.touched) == 0 {
		return nil
	}
	if err := s.right.hold(ctx); err != nil {
		return err
	}
	if s.options.Delivery == Transactional {
		return s.sender.transact(ctx, p)
	}
	return s.sender.send(ctx, p)
}

// Close is as in sink.Sink. What the last Write left in doubt is settled, if that takes no longer than a moment, so
// that no batch of this sink comes to a log that its successor has read already.
func (s *Sink) Close(ctx context.Context) error {
	s.opened = false
	if s.cluster == nil {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, s.tuning.grace)
	defer cancel()
	var err error // what it cannot do, the next Open does, in this process or another one
	if s.options.Delivery == Transactional {
		err = s.right.abort(bounded)
	} else {
		err = s.sender.settle(bounded)
	}
	if err != nil && bounded.Err() == nil {
		s.again(err)
	}
	s.disconnect()
	return nil
}

// checkTime is how long Check waits for the brokers at most.
const checkTime = 8 * time.Second

// Check logs in, looks whether the topics can be written to, or made where they are missing, and changes nothing: it
// fences nobody. It is for a sink that is not open. The note says what will work less well than it
// could.
func (s *Sink) Check(ctx context.Context) (note string, err error) {
	bounded, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	if err := s.connect(); err != nil {
		return "", err
	}
	defer s.disconnect()
	if err := s.patiently(bounded, s.cluster.Reach); err != nil {
		return "", checkError("reach the brokers", wire.Explain(err))
	}
	var problems, refused []error
	notes := &notes{}
	names := slices.Compact(slices.Sorted(slices.Values(slices.Concat(s.options.Topics, s.options.Found))))
	for _, name := range names {
		err := s.checkTopic(bounded, name, notes)
		if s.catalog.isChosen(name) && refusesTopic(err) {
			refused = append(refused, err)
			continue
		}
		problems = append(problems, err)
	}
	switch n := len(refused); {
	case n == 0:
	case n == len(names):
		problems = append(problems, refused...)
	default:
		notes.texts = append(notes.texts, fmt.Sprintf("records of %d resources that a wildcard stands for become dead letters, since: %v", n, refused[0]))
	}
	problems = append(problems, s.checkProducer(bounded, notes))
	return notes.String(), errors.Join(problems...)
}

// patiently asks again while a broker answers that it cannot tell yet, as one does that has just started. What is no
// answer is not waited for.
func (s *Sink) patiently(ctx context.Context, ask func(context.Context) error) error {
	wait := newBackOff()
	for {
		err := ask(ctx)
		var answer *wire.Error
		if !errors.As(err, &answer) || wire.Classify(err) != wire.Retriable || answer.Code == kerr.UnknownTopicOrPartition.Code || ctx.Err() != nil {
			return err
		}
		s.cluster.Refresh()
		if !sink.Pause(ctx, wait.NextBackOff(), nil) {
			return err
		}
	}
}

// checkTopic looks at one topic.
func (s *Sink) checkTopic(ctx context.Context, name string, notes *notes) error {
	if err := validTopic(name); err != nil {
		return topicPermanent("open %w", err)
	}
	if err := s.options.reserved(name); err != nil {
		return err
	}
	var known wire.Topic
	err := s.patiently(ctx, func(ctx context.Context) (err error) {
		known, err = s.cluster.Topic(ctx, name)
		return err
	})
	switch absent := wire.Code(err) == kerr.UnknownTopicOrPartition.Code; {
	case absent && s.options.Create:
		return s.checkCreation(ctx, s.options.spec(name), notes)
	case absent:
		return missing("look up", name)
	case err != nil:
		return checkError("look up topic "+name, wire.Explain(err))
	}
	settings, err := s.catalog.settings(ctx, name)
	if err != nil {
		return checkError("read the settings of topic "+name, wire.Explain(err))
	}
	if err := s.catalog.fits(known, settings); err != nil {
		return err
	}
	if known.Operations.Lacks(wire.Read) {
		notes.add("READ is not permitted on %s, so records may come twice after a crash, with the same id: grant READ", name)
	}
	if known.Operations.Lacks(wire.DescribeConfigs) {
		notes.add("DESCRIBE_CONFIGS is not permitted on %s, so its max.message.bytes is taken for Kafka's default: grant DESCRIBE_CONFIGS", name)
	}
	if settings.MaxMessageBytes < sink.LargestObject && !s.options.Whole {
		notes.add("%s takes batches of %d KiB, and objects can have %d KiB: a gap record will stand for one that is larger; raise max.message.bytes of the topic",
			name, settings.MaxMessageBytes>>10, sink.LargestObject>>10)
	}
	for _, text := range s.options.misfits(known, settings) {
		notes.add("%s %s", name, text)
	}
	if s.options.Judge == nil {
		return nil
	}
	t, verb := newTopic(known, settings), "look for other clusters in topic "+name
	if err = s.locateAll(ctx, []*topic{t}); err == nil {
		err = s.catalog.inspectAll(ctx, t)
	}
	return checkError(verb, err)
}

// checkCreation asks whether the topic can be made.
func (s *Sink) checkCreation(ctx context.Context, spec wire.TopicSpec, notes *notes) error {
	for _, text := range s.options.forgets(spec.Configs) {
		notes.add("%s %s", spec.Name, text)
	}
	if err := s.options.keepsAll(spec.Name, spec.Configs[cleanupPolicy]); err != nil {
		return err
	}
	err := s.patiently(ctx, func(ctx context.Context) error { return s.cluster.Validate(ctx, spec) })
	return checkError("create topic "+spec.Name, wire.Explain(err))
}

// checkProducer finds out whether the user may have a producer id.
func (s *Sink) checkProducer(ctx context.Context, notes *notes) error {
	if s.options.Delivery == Transactional {
		return s.checkRight(ctx)
	}
	if s.options.TransactionalID != "" && wire.Classify(s.checkRight(ctx)) == wire.Fatal {
		notes.texts = append(notes.texts, fmt.Sprintf("WRITE is not permitted on transactional id %s, so a second exporter on the same topics is not kept out: grant WRITE on it",
			s.options.TransactionalID))
	}
	err := s.patiently(ctx, func(ctx context.Context) error {
		_, err := s.cluster.InitProducer(ctx, "", 0, wire.NoProducer())
		return err
	})
	return checkError("get a producer id", wire.Explain(err))
}

// checkRight ends a transaction of a producer that nobody has, which the coordinator refuses for one reason or the
// other.
func (s *Sink) checkRight(ctx context.Context) error {
	nobody := wire.Tx{TransactionalID: s.options.TransactionalID, Producer: wire.Producer{ID: 1<<63 - 1}}
	verb := "use transactional id " + s.options.TransactionalID
	// The first one ever makes the brokers create the topic of their coordinators, which takes a moment.
	err := s.persist(ctx, verb, func(ctx context.Context) error { return s.cluster.EndTransaction(ctx, nobody, false) })
	if class := wire.Classify(err); decided(err) || class == wire.Retriable {
		return checkError(verb, err)
	}
	return nil
}

// checkError explains what Open would only try again.
func checkError(verb string, err error) error {
	switch {
	case err == nil, decided(err):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: no answer in time: check the addresses, and that the brokers are up", verb)
	}
	return fmt.Errorf("%s: %w: check the addresses, and that the brokers are up", verb, err)
}
