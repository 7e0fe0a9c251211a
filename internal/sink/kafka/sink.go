package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

var (
	_ sink.Sink      = (*Sink)(nil)
	_ sink.Recaller  = (*Sink)(nil)
	_ sink.Announcer = (*Sink)(nil)
)

// Sink writes into topics. See sink.Sink for what its methods promise.
type Sink struct {
	*brokers
	*known
	inspector *inspector
	catalog   *catalog
	right     *right
	tails     *tails
	planner   *planner
	sender    *sender
	opened    bool // Write may be called
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
	data := &chosen{brokers: b, known: k, shut: map[string]objection{}, making: map[string]bool{}}
	judges := &inspector{b, data}
	topics := &catalog{brokers: b, known: k, chosen: data, inspector: judges, told: map[string]int{}}
	writer := &right{brokers: b, known: k, producer: wire.NoProducer(), owner: wire.NoProducer()}
	plans := &planner{options: b.options, catalog: topics, encoders: encoders, refused: map[string]*sink.RejectedError{}, last: map[string]place{}}
	return &Sink{
		brokers: b, known: k, inspector: judges, catalog: topics, right: writer, planner: plans, tails: &tails{brokers: b, known: k, right: writer},
		sender: &sender{brokers: b, known: k, chosen: data, inspector: judges, right: writer, encoders: encoders, refused: plans.refused},
	}, nil
}

// Write is as in sink.Sink. Any error but a rejection closes the sink.
func (s *Sink) Write(ctx context.Context, messages []sink.Message) (sink.Mark, error) {
	if !s.opened {
		return "", errors.New("write to kafka: the sink is not open: open it")
	}
	if ctx.Err() != nil {
		return "", sink.Ended(ctx, "write to kafka", nil)
	}
	plan, rejected, err := s.planner.plan(ctx, messages)
	if rejected != nil && s.raised(ctx, &messages[rejected.Index]) {
		plan, rejected, err = s.planner.plan(ctx, messages)
	}
	if err == nil {
		err = s.deliver(ctx, plan)
	}
	switch {
	case err != nil:
		s.opened = false
		return "", err
	case rejected != nil:
		delete(s.planner.refused, messages[rejected.Index].ID) // told
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
	if t == nil || s.planner.refused[m.ID] != nil {
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

// Recall is as in sink.Recaller. It reads the topics from their start, one partition after the other.
func (s *Sink) Recall(ctx context.Context, each func(id string) error) error {
	if !s.opened {
		return errors.New("read the topics: the sink is not open: open it")
	}
	return s.tails.all(ctx, each)
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

// planner sorts messages by partition.
type planner struct {
	options  *Options
	catalog  *catalog
	encoders encoders
	turn     uint64                         // counts the plans
	last     map[string]place               // of the plan
	refused  map[string]*sink.RejectedError // by message id: what a broker has refused, and the next Write rejects
}

// plan sorts the messages by partition. It finds what would be rejected before anything is sent, since partitions do
// not wait for each other, and nothing after a rejected message may be written.
func (s *planner) plan(ctx context.Context, messages []sink.Message) (plan, *sink.RejectedError, error) {
	p := plan{messages: messages}
	resolves := func(m sink.Message) bool { return m.Op == isResolved }
	if s.options.Delivery == Idempotent || slices.ContainsFunc(messages, resolves) { // a transaction is in the log as a whole
		p.last = s.last
	}
	s.turn++
	defer clear(s.last) // the texts are the batch's
	var t *topic
	for i := 0; i < len(messages); {
		end := atomEnd(messages, i)
		no, err := s.place(ctx, &t, messages[i:end])
		if err != nil {
			return p, nil, err
		}
		if no != nil {
			here := *no
			here.Index = i
			return p, &here, nil
		}
		if err := s.catalog.sameSchema(t, &messages[i]); err != nil {
			return p, nil, err
		}
		for _, to := range t.partitionsOf(&messages[i]) {
			if to.turn != s.turn {
				s.start(to)
				p.touched = append(p.touched, to)
			}
			p.add(to, i, end)
		}
		i = end
	}
	return p, nil, nil
}

// start makes the partition one of the plan, which has nothing of it yet.
func (s *planner) start(p *partition) {
	p.turn, p.indexes, p.steps = s.turn, p.indexes[:0], p.steps[:0]
}

// place finds the topic of an atom, which is mostly that of the one before, and what speaks against writing it.
func (s *planner) place(ctx context.Context, t **topic, atom []sink.Message) (*sink.RejectedError, error) {
	if name := atom[0].Destination; *t == nil || (*t).name != name {
		found, no, err := s.catalog.of(ctx, name)
		if err != nil || no != nil {
			return no, err
		}
		*t = found
	}
	if no := s.refused[atom[0].ID]; no != nil {
		return no, nil
	}
	// The limit is one for batches as they are sent: what is too large must be compressed to know.
	limit := int((*t).limit.Load())
	if batch.HeaderSize+sizeBound(atom) <= limit {
		return nil, nil
	}
	size := s.encoders.measure(atom)
	if size <= limit {
		return nil, nil
	}
	return &sink.RejectedError{Reason: "too_large", Err: fmt.Errorf("a batch of %d bytes, and topic %s takes %d: raise max.message.bytes of the topic",
		size, (*t).name, limit)}, nil
}
