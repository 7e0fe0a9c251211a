package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// sender makes batches durable, one at a time in each partition.
type sender struct {
	*brokers
	known     *known
	chosen    *chosen
	inspector *inspector
	right     *right
	encoders  *encoders

	mu      sync.Mutex          // guards the following, which the goroutines of a Write share
	refused map[string]*refusal // the planner's
	lost    *sink.LostError     // what a log lacks, for the next Open to tell
}

// produceOnce is one attempt to send a batch.
type produceOnce func(context.Context, wire.ProduceRequest) (wire.ProduceResult, error)

// transmit sends the partition's frozen batch until it is durable.
func (s *sender) transmit(ctx context.Context, p *partition, once produceOnce) error {
	verb := "write to " + p.String()
	gone := absence{brokers: s.brokers}
	err := s.persist(ctx, verb, func(ctx context.Context) error {
		if s.now().Sub(p.frozen.since) > s.tuning.resend {
			p.frozen = nil // the broker may have forgotten that it has it
			return reopen("%s: no answer for more than %s: open the sink again, to see what the log holds", verb, s.tuning.resend)
		}
		result, err := once(ctx, wire.ProduceRequest{Topic: p.topic.name, Partition: p.number, Batch: p.frozen.bytes})
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

// acknowledge moves the partition on. A batch can only be after those before it: if it is not, the log is another one
// than the one that had them (I4).
func (s *sender) acknowledge(p *partition, offset int64) error {
	f := p.frozen
	p.frozen = nil
	if offset < p.next {
		return s.loses(p, fmt.Sprintf("offset %d", offset))
	}
	if !f.taken {
		s.encoders.recycle(f.bytes)
	}
	p.strange(p.next, offset, s.options.markers())
	p.next = offset + int64(f.count)
	p.sequence = batch.NextSequence(p.sequence, f.count)
	return nil
}

// doubt judges the error of a request to write.
func (s *sender) doubt(ctx context.Context, p *partition, gone *absence, err error) error {
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

// loses notes that a log lacks what it had acknowledged, for the next Open to tell.
func (s *sender) loses(p *partition, have string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = &sink.LostError{
		Log: p.String(), Want: fmt.Sprintf("offset %d", p.next), Have: have,
	}
	return reopen("write to kafka: %w: open the sink again", s.lost)
}

// settle makes durable what an earlier Write left in doubt, under the same sequence. What comes late of its requests
// is then a second copy, which the broker knows; were it left alone, it would come after what Open reads.
func (s *sender) settle(ctx context.Context) error {
	if s.options.Delivery == Transactional {
		return nil // a new epoch refuses what comes late
	}
	for p := range s.known.partitions() {
		if p.frozen == nil {
			continue
		}
		err := s.transmit(ctx, p, s.cluster.Produce)
		var again *reopenError
		if errors.As(err, &again) || refused(err) || refusesTopic(err) && s.chosen.has(p.topic.name) {
			p.frozen, err = nil, nil // it is not in the log, or cannot be told apart: the tail says which
		}
		if err != nil {
			return err
		}
		p.topic.moved = true
	}
	return nil
}
