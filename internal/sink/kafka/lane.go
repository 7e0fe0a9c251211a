package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// send sends the plan step by step.
func (s *sender) send(ctx context.Context, p plan) error {
	for step := range p.steps {
		if err := s.sendStep(ctx, p, step); err != nil {
			return err
		}
	}
	return s.inspector.inspectOthers(ctx, p.touched)
}

// sendStep writes to all partitions at once; their batches share requests. The first failure ends all of them; what
// they have written by then, Open finds.
func (s *sender) sendStep(ctx context.Context, p plan, step int) error {
	var lanes []*lane
	for _, to := range p.touched {
		part := p.part(step, to)
		for _, at := range part {
			s.speakOf(&p.messages[at])
		}
		if len(part) > 0 {
			lanes = append(lanes, &lane{sender: s, partition: to, rest: part, messages: p.messages, most: s.tuning.records})
		}
	}
	bundle := s.cluster.Bundle(len(lanes), s.tuning.parallel, s.tuning.bytes)
	return together(ctx, s.tuning.parallel, lanes, func(ctx context.Context, l *lane) error {
		l.bundle = bundle
		return l.run(ctx)
	})
}

// headerOffsets is, of what is resolved in a topic of frames, the offset of each partition of the topic of the objects
// before which everything is.
const headerOffsets = "kubecdc-offsets"

// speakOf gives it to the message, when all before that is durable.
func (s *sender) speakOf(m *sink.Message) {
	name, isAside := strings.CutSuffix(m.Destination, sink.FramesSuffix)
	t := s.known.topics[name]
	if m.Op != isResolved || !isAside || t == nil || m.Headers != nil && m.Headers[len(m.Headers)-1].Name == headerOffsets {
		return
	}
	offsets := make([]int64, len(t.partitions))
	for i, p := range t.partitions {
		offsets[i] = p.next
	}
	text, _ := json.Marshal(map[string][]int64{name: offsets}) // of numbers and a text it cannot fail
	m.Headers = append(slices.Clip(m.Headers), sink.Header{Name: headerOffsets, Value: string(text)})
}

// lane writes the messages of one partition, one batch after the other (I3).
type lane struct {
	sender    *sender
	partition *partition
	messages  []sink.Message
	rest      []int32      // of the partition's messages: what is not durable yet
	bundle    *wire.Bundle // that it shares requests in
	most      int          // records of a batch
	record    batch.Record
}

func (l *lane) run(ctx context.Context) error {
	defer func() { l.bundle.Leave() }()
	for len(l.rest) > 0 {
		l.freeze()
		n := l.partition.frozen.count
		err := l.sender.transmit(ctx, l.partition, l.produce)
		if refused(err) {
			if err = l.refused(err); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return l.sender.chosen.forbidden(l.partition.topic.name, err)
		}
		l.rest = l.rest[n:]
	}
	return nil
}

// produce sends a batch of the lane once.
func (l *lane) produce(ctx context.Context, request wire.ProduceRequest) (int64, error) {
	if l.sender.options.Delivery == Transactional {
		request.TransactionalID = l.sender.options.TransactionalID
	}
	offset, err := l.bundle.Produce(ctx, request)
	if err != nil { // it has left, and goes alone
		l.bundle = l.sender.cluster.Bundle(1, 1, 0)
	}
	return offset, err
}

// freeze encodes the next batch.
func (l *lane) freeze() {
	e := <-l.sender.encoders
	defer l.sender.encoders.done(e)
	p := l.partition
	limit := min(int(p.topic.limit.Load()), l.sender.tuning.bytes)
	for i := 0; i < len(l.rest); {
		end, size := l.atom(i)
		if i > 0 && (e.Size()+size > limit || end > l.most) {
			break
		}
		for ; i < end; i++ {
			e.Add(fill(&l.record, &l.messages[l.rest[i]]))
		}
	}
	next, _ := l.sender.spare.Get().(*frozen)
	if next == nil {
		next = new(frozen)
	}
	next.count, next.since, next.sent = e.Count(), l.sender.now(), false
	next.bytes = e.Finish(next.bytes, batch.Producer{
		ID: l.sender.right.producer.ID, Epoch: l.sender.right.producer.Epoch, Sequence: p.sequence, Transactional: l.sender.options.Delivery == Transactional,
	})
	p.frozen = next
}

// atom is where the messages that belong to the one at i end, and what they take.
func (l *lane) atom(i int) (end, size int) {
	first := int(l.rest[i])
	atom := l.messages[first:atomEnd(l.messages, first)]
	return i + len(atom), sizeBound(atom)
}

// refused halves the batch until one message stands alone. Other partitions are on their way meanwhile, so the message
// cannot be rejected now as the contract wants it: it is remembered, and the Write after the next Open rejects it
// before it sends anything.
func (l *lane) refused(err error) error {
	p := l.partition
	size, count := len(p.frozen.bytes), p.frozen.count
	p.frozen = nil
	reason := "invalid"
	if wire.Classify(err) == wire.TooLarge {
		reason = "too_large"
		p.topic.shrink(size)
	}
	if end, _ := l.atom(0); count > end {
		l.most = max(end, count/2)
		return nil
	}
	s := l.sender
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &l.messages[l.rest[0]]
	s.refused[m.ID] = &sink.RejectedError{Reason: reason, Err: wire.Explain(err)}
	return reopen("write %s to topic %s: %w: open the sink again", m.ID, p.topic.name, err)
}

// transact makes the planned messages one transaction. After an error it is left to the next Open, which aborts what
// was not committed and finds what was: a batch of a transaction that has ended must not be sent again, it would spoil
// the sequence of the partition.
func (s *sender) transact(ctx context.Context, p plan) error {
	s.right.inTx = true
	err := s.right.join(ctx, "begin a transaction", p.touched, func(to *partition) error { return s.loses(to, deleted) })
	if err == nil {
		err = s.send(ctx, p)
	}
	if err == nil {
		err = s.persist(ctx, "commit a transaction", func(ctx context.Context) error {
			return s.cluster.EndTransaction(ctx, s.right.tx(), true)
		})
	}
	if err == nil {
		s.right.inTx = false
		return nil
	}
	if answer, is := errors.AsType[*wire.Error](err); is {
		err = s.chosen.forbidden(answer.Topic, err)
	}
	if decided(err) || ctx.Err() != nil {
		return err
	}
	return reopen("write to kafka with transactional id %s: %w: open the sink again", s.options.TransactionalID, err)
}

// sender makes batches durable, one at a time in each partition.
type sender struct {
	*brokers
	known     *known
	chosen    *chosen
	inspector *inspector
	right     *right
	encoders  encoders
	spare     sync.Pool // of *frozen, for their memory

	mu      sync.Mutex                     // guards the following, which the goroutines of a Write share
	refused map[string]*sink.RejectedError // the planner's
	lost    *sink.LostError                // what a log lacks, for the next Open to tell
}

// transmit sends the partition's frozen batch until it is durable, as once does at each attempt.
func (s *sender) transmit(ctx context.Context, p *partition, once func(context.Context, wire.ProduceRequest) (int64, error)) error {
	verb := "write to " + p.String()
	isGone := s.absence()
	err := s.persist(ctx, verb, func(ctx context.Context) error {
		if s.now().Sub(p.frozen.since) > s.tuning.resend {
			p.frozen = nil // the broker may have forgotten that it has it
			return reopen("%s: no answer for more than %s: open the sink again, to see what the log holds", verb, s.tuning.resend)
		}
		again := p.frozen.sent
		p.frozen.sent = true
		offset, err := once(ctx, wire.ProduceRequest{Topic: p.topic.name, Partition: p.number, Batch: p.frozen.bytes})
		switch {
		case err == nil:
			acked, count, markers := p.frozen, p.frozen.count, int64(0) // that a Write leaves after what it has written
			if p.frozen = nil; !again {                                 // else a connection that was given up may still read it
				s.spare.Put(acked)
			}
			// A batch can only be after those before it: if it is not, the log is another one than had them (I4).
			if offset < p.next {
				return s.loses(p, fmt.Sprintf("offset %d", offset))
			}
			if s.options.Delivery == Transactional {
				markers = 1
			}
			p.strange(p.next, offset, markers)
			p.next, p.sequence = offset+int64(count), batch.NextSequence(p.sequence, count)
			return nil
		case wire.Code(err) == kerr.OutOfOrderSequenceNumber.Code:
			// With one batch at a time, the broker lacks the one before (measured: after an unclean leader election).
			// A transaction's epoch may be over instead, which the next Open finds out.
			p.frozen = nil
			if s.options.Delivery == Idempotent {
				return s.loses(p, "an earlier offset")
			}
		case wire.Code(err) == kerr.UnknownTopicOrPartition.Code && isGone(ctx, p.topic):
			p.frozen = nil
			return s.loses(p, deleted)
		}
		return err
	})
	if err != nil && !decided(err) && ctx.Err() == nil && !refused(err) {
		return &reopenError{err}
	}
	return err
}

// deleted is what is left of a log then.
const deleted = "no offset: the topic was deleted"

// loses notes that a log lacks what it had acknowledged, for the next Open to tell.
func (s *sender) loses(p *partition, have string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = &sink.LostError{Log: p.String(), Want: fmt.Sprintf("offset %d", p.next), Have: have}
	return reopen("write to kafka: %w: open the sink again", s.lost)
}

// settle makes durable what an earlier Write left in doubt, under the same sequence. What comes late of its requests
// is then a second copy, which the broker knows; were it left alone, it would come after what Open reads.
func (s *sender) settle(ctx context.Context) error {
	if s.options.Delivery == Transactional {
		return nil // a new epoch refuses what comes late
	}
	for _, p := range s.known.partitions() {
		if p.frozen == nil {
			continue
		}
		err := s.transmit(ctx, p, s.cluster.Produce)
		if errors.As(err, new(*reopenError)) || refused(err) || refusesTopic(err) && s.chosen.has(p.topic.name) {
			p.frozen, err = nil, nil // it is not in the log, or cannot be told apart: the tail says which
		}
		if err != nil {
			return err
		}
	}
	return nil
}
