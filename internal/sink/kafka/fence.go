package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// enroll gets a producer id, and with it the right to write, which whoever had it before loses. In transactional
// delivery that ends the transaction that a crash left open. In idempotent delivery the partitions have yet to hear of
// it (fence). Where Kafka does not let idempotent delivery have the right, it goes on without.
func (s *Sink) enroll(ctx context.Context) error {
	if s.options.TransactionalID == "" {
		return s.enrollAnonymous(ctx)
	}
	verb := "open transactional id " + s.options.TransactionalID
	began := s.now()
	err := s.persist(ctx, verb, func(ctx context.Context) error {
		err := s.acquire(ctx)
		if wire.Code(err) == codeNoCoordinator && s.options.Delivery == Idempotent && s.now().Sub(began) > s.tuning.coordinator {
			return &sink.PermanentError{Err: wire.Explain(err)}
		}
		return err
	})
	var permanent *sink.PermanentError
	if !errors.As(err, &permanent) || s.options.Delivery == Transactional || wire.Classify(err) == wire.Fenced {
		return err
	}
	s.withoutFence(err)
	return s.enrollAnonymous(ctx)
}

// acquire asks once for the right to write, as the one who had it, so that a newer owner is not fenced by us (KIP-360).
func (s *Sink) acquire(ctx context.Context) error {
	producer, err := s.cluster.InitProducer(ctx, s.options.TransactionalID, s.tuning.transaction, s.owner)
	switch {
	case err == nil:
		s.owner, s.owned, s.renewed = producer, true, s.now()
		s.begin(producer)
	case s.owner != wire.NoProducer() && wire.Classify(err) == wire.Fenced:
		return &sink.PermanentError{Fenced: true, Err: fmt.Errorf("open transactional id %s: another exporter has taken it over: stop it, or give each its own kafka.transactionalId: %w",
			s.options.TransactionalID, err)}
	}
	return err
}

func (s *Sink) enrollAnonymous(ctx context.Context) error {
	return s.persist(ctx, "get a producer id", func(ctx context.Context) error {
		producer, err := s.cluster.InitProducer(ctx, "", 0, wire.NoProducer())
		if err == nil {
			s.owned = false
			s.begin(producer)
		}
		return err
	})
}

// begin counts sequences anew, as each epoch does.
func (s *Sink) begin(producer wire.Producer) {
	s.producer, s.inTx = producer, false
	for _, t := range s.topics {
		for _, p := range t.partitions {
			p.sequence, p.frozen = 0, nil
		}
	}
}

// withoutFence tells once that nobody is kept out.
func (s *Sink) withoutFence(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unfenced {
		return
	}
	s.unfenced = true
	s.options.Retry("unfenced", fmt.Errorf("%w: until then a second exporter on the same topics is not kept out, and what a slow broker still holds of a killed one "+
		"may come late, behind newer states of the same objects", err))
}

// fence shuts out of the topics whoever had the right to write before, in idempotent delivery.
//
// A partition compares the epoch of every batch with the newest that it knows of the producer (KIP-98), and learns of
// ours by the markers of a transaction that has nothing in it. From then on nothing of an older epoch can come, however
// long it lay in a socket, so what the partitions hold is final. That a new epoch is handed out tells that all markers
// are written. Readers see nothing of it; offsets move by one.
func (s *Sink) fence(ctx context.Context, topics []*topic) error {
	partitions := map[string][]int32{}
	for _, t := range topics {
		for _, p := range t.partitions {
			if !t.fenced {
				partitions[t.name] = append(partitions[t.name], p.number)
			}
		}
	}
	if len(partitions) > 0 && s.owned && s.options.Delivery == Idempotent {
		if err := s.raiseOwn(ctx, topics, partitions); err != nil {
			return err
		}
	}
	for _, t := range topics {
		t.fenced = true
	}
	return nil
}

// raiseOwn is raiseEpoch for as long as the right to write is ours. That an epoch is over may mean that the transaction
// took too long.
func (s *Sink) raiseOwn(ctx context.Context, topics []*topic, partitions map[string][]int32) error {
	for {
		err := s.raiseEpoch(ctx, topics, partitions)
		if decided(err) || wire.Classify(err) != wire.Fenced {
			return err
		}
		s.again(err)
		if err := s.persist(ctx, "open transactional id "+s.options.TransactionalID, s.acquire); err != nil {
			return err
		}
	}
}

// raiseEpoch makes the partitions know our epoch, and gets the next one.
func (s *Sink) raiseEpoch(ctx context.Context, topics []*topic, partitions map[string][]int32) error {
	tx, gone := s.tx(), absence{sink: s}
	err := s.persist(ctx, "fence the topics", func(ctx context.Context) error {
		err := s.cluster.AddPartitions(ctx, tx, partitions)
		if wire.Code(err) != codeUnknownTopic {
			return err
		}
		for _, t := range topics {
			if gone.of(ctx, t) {
				return reopen("fence topic %s: it was deleted: open the sink again", t.name)
			}
		}
		return err
	})
	if err == nil {
		err = s.persist(ctx, "fence the topics", func(ctx context.Context) error { return s.cluster.EndTransaction(ctx, tx, false) })
	}
	if err == nil {
		err = s.persist(ctx, "fence the topics", s.acquire)
	}
	return err
}

// hold sees to it, before something is written, that nobody else can write: not to topics that are new here, and not
// because the coordinator has forgotten who has the right.
func (s *Sink) hold(ctx context.Context) error {
	if !s.owned || s.options.Delivery == Transactional {
		return nil
	}
	if !s.fenced {
		if err := s.fence(ctx, slices.Collect(maps.Values(s.topics))); err != nil {
			return err
		}
		s.fenced = true
	}
	if s.now().Sub(s.renewed) < s.tuning.renewal {
		return nil
	}
	return s.renew(ctx)
}

// renew asks for the right to write again. Where nobody answers, writing goes on: to the partitions the epoch is as
// good as before.
func (s *Sink) renew(ctx context.Context) error {
	err := s.lingering(ctx, s.acquire)
	switch {
	case err == nil, ctx.Err() != nil, decided(err):
		return err
	case wire.Classify(err) == wire.Fatal:
		s.withoutFence(wire.Explain(err))
	default:
		s.again(err)
	}
	s.renewed = s.now().Add(time.Minute - s.tuning.renewal)
	return nil
}

// throttled tells that a broker's quota is used up.
func (s *Sink) throttled(time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options.Retry("throttled", errThrottled)
}
