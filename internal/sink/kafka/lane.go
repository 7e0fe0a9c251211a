package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// deliver makes the planned messages durable (I1).
func (s *Sink) deliver(ctx context.Context, p plan) error {
	if len(p.touched) == 0 {
		return nil
	}
	if err := s.hold(ctx); err != nil {
		return err
	}
	s.look(ctx)
	if s.options.Delivery == Transactional {
		return s.transact(ctx, p)
	}
	return s.send(ctx, p, "")
}

// send sends the plan step by step.
func (s *Sink) send(ctx context.Context, p plan, transactionalID string) error {
	for step := range p.steps() {
		if err := s.sendStep(ctx, p, step, transactionalID); err != nil {
			return err
		}
	}
	return s.inspectOthers(ctx, p.touched)
}

// sendStep writes to all partitions at once. While one waits for its broker, another one is encoded. The first failure
// ends all of them; what they have written by then, Open finds.
func (s *Sink) sendStep(ctx context.Context, p plan, step int, transactionalID string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.tuning.parallel)
	for _, to := range p.touched {
		part := p.part(step, to)
		if len(part) == 0 {
			continue
		}
		to.topic.moved = true
		group.Go(func() error {
			l := lane{sink: s, partition: to, rest: part, messages: p.messages, transactionalID: transactionalID, most: s.tuning.records}
			return l.run(ctx)
		})
	}
	return group.Wait()
}

// lane writes the messages of one partition, one batch after the other (I3).
type lane struct {
	sink            *Sink
	partition       *partition
	messages        []sink.Message
	rest            []int32 // of the partition's messages: what is not durable yet
	transactionalID string
	most            int // records of a batch
	record          record
}

func (l *lane) run(ctx context.Context) error {
	for len(l.rest) > 0 {
		if err := l.freeze(); err != nil {
			return err
		}
		n := l.partition.frozen.count
		err := l.sink.transmit(ctx, l.partition, l.transactionalID)
		if refused(err) {
			if err = l.refused(err); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return l.sink.forbidden(l.partition.topic.name, err)
		}
		l.rest = l.rest[n:]
	}
	return nil
}

// freeze encodes the next batch.
func (l *lane) freeze() error {
	e, err := l.sink.encoder()
	if err != nil {
		return err
	}
	defer l.sink.done(e)
	p := l.partition
	limit := min(int(p.topic.limit.Load()), l.sink.tuning.bytes)
	for i := 0; i < len(l.rest); {
		end, size := l.atom(i)
		if i > 0 && (e.Size()+size > limit || end > l.most) {
			break
		}
		for ; i < end; i++ {
			e.Add(l.record.fill(&l.messages[l.rest[i]]))
		}
	}
	count := e.Count()
	b, err := e.Finish(l.sink.memory(), batch.Producer{
		ID: l.sink.producer.ID, Epoch: l.sink.producer.Epoch, Sequence: p.sequence, Transactional: l.transactionalID != "",
	})
	if err == nil {
		p.frozen = &frozen{bytes: b, count: count, since: l.sink.now()}
	}
	return err
}

// atom is where the messages that belong to the one at i end, and what they take.
func (l *lane) atom(i int) (end, size int) {
	first := &l.messages[l.rest[i]]
	for end = i; end < len(l.rest) && (end == i || together(first, &l.messages[l.rest[end]])); end++ {
		size += sizeBound(&l.messages[l.rest[end]])
	}
	return end, size
}

// refused says whether the broker will never take the batch, and so has not taken it: the next one has its sequence.
func refused(err error) bool {
	if err == nil || decided(err) {
		return false
	}
	class := wire.Classify(err)
	return class == wire.TooLarge || class == wire.Invalid
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
	s := l.sink
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &l.messages[l.rest[0]]
	s.refused[m.ID] = &refusal{reason: reason, err: wire.Explain(err)}
	return reopen("write %s to topic %s: %w: open the sink again", m.ID, p.topic.name, err)
}

// transmit sends the partition's frozen batch until it is durable.
func (s *Sink) transmit(ctx context.Context, p *partition, transactionalID string) error {
	verb := fmt.Sprintf("write to topic %s partition %d", p.topic.name, p.number)
	gone := absence{sink: s}
	err := s.persist(ctx, verb, func(ctx context.Context) error {
		if s.now().Sub(p.frozen.since) > s.tuning.resend {
			p.frozen = nil // the broker may have forgotten that it has it
			return reopen("%s: no answer for more than %s: open the sink again, to see what the log holds", verb, s.tuning.resend)
		}
		result, err := s.cluster.Produce(ctx, wire.ProduceRequest{
			Topic: p.topic.name, Partition: p.number, TransactionalID: transactionalID, Batch: p.frozen.bytes,
		})
		if err != nil {
			p.frozen.taken = p.frozen.taken || wire.Code(err) == 0
			return s.doubt(ctx, p, &gone, err)
		}
		return s.acknowledge(p, result.BaseOffset)
	})
	if err != nil && !decided(err) && ctx.Err() == nil && !refused(err) {
		return &reopenError{err}
	}
	return err
}

// acknowledge moves the partition on. A batch can only be behind those before it: if it is not, the log is another one
// than the one that had them (I4).
func (s *Sink) acknowledge(p *partition, offset int64) error {
	f := p.frozen
	p.frozen = nil
	if offset < p.next {
		return s.loses(p, fmt.Sprintf("offset %d", offset))
	}
	if !f.taken {
		s.recycle(f.bytes)
	}
	p.strange(p.next, offset, s.markers())
	p.next = offset + int64(f.count)
	p.sequence = batch.NextSequence(p.sequence, f.count)
	return nil
}

// doubt judges the error of a request to write.
func (s *Sink) doubt(ctx context.Context, p *partition, gone *absence, err error) error {
	switch wire.Code(err) {
	case codeOutOfOrder:
		// With one batch at a time, the broker lacks the one before (measured: after an unclean leader election).
		// A transaction's epoch may be over instead, which the next Open finds out.
		p.frozen = nil
		if s.options.Delivery == Idempotent {
			return s.loses(p, "an earlier offset")
		}
	case codeUnknownTopic:
		if gone.of(ctx, p.topic) {
			p.frozen = nil
			return s.loses(p, "no offset: the topic was deleted")
		}
	}
	return err
}

// absence tells a topic that was deleted from one that is so new that not every broker knows it.
type absence struct {
	sink  *Sink
	since time.Time
}

func (a *absence) of(ctx context.Context, t *topic) bool {
	if a.since.IsZero() {
		a.since = a.sink.now()
	}
	if _, err := a.sink.cluster.Topic(ctx, t.name); wire.Code(err) != codeUnknownTopic {
		return false
	}
	return a.sink.now().Sub(a.since) > a.sink.tuning.gone
}

// loses notes that a log lacks what it had acknowledged, for the next Open to tell.
func (s *Sink) loses(p *partition, have string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = &sink.LostError{
		Log: fmt.Sprintf("topic %s partition %d", p.topic.name, p.number), Want: fmt.Sprintf("offset %d", p.next), Have: have,
	}
	return reopen("write to kafka: %w: open the sink again", s.lost)
}

// memory is for a batch.
func (s *Sink) memory() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.spare)
	if n == 0 {
		return nil
	}
	b := s.spare[n-1]
	s.spare = s.spare[:n-1]
	return b
}

// recycle takes the memory of a batch that was acknowledged, if a broker answered each attempt: a connection that was
// given up may still read it.
func (s *Sink) recycle(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.spare) < s.tuning.parallel/2 && cap(b) <= 2*s.tuning.bytes {
		s.spare = append(s.spare, b[:0])
	}
}

// settle makes durable what an earlier Write left in doubt, under the same sequence. What comes late of its requests
// is then a second copy, which the broker knows; were it left alone, it would come behind what Open reads.
func (s *Sink) settle(ctx context.Context) error {
	if s.options.Delivery == Transactional {
		return nil // a new epoch refuses what comes late
	}
	for _, name := range s.names {
		for _, p := range s.topics[name].partitions {
			if p.frozen == nil {
				continue
			}
			err := s.transmit(ctx, p, "")
			var again *reopenError
			if errors.As(err, &again) || refused(err) || refusesTopic(err) && s.chosen(name) {
				p.frozen, err = nil, nil // it is not in the log, or cannot be told apart: the tail says which
			}
			if err != nil {
				return err
			}
			s.topics[name].moved = true
		}
	}
	return nil
}
