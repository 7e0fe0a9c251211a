package kafka

import (
	"context"
	"errors"

	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

func (s *Sink) tx() wire.Tx {
	return wire.Tx{TransactionalID: s.options.TransactionalID, Producer: s.producer}
}

// transact makes the planned messages one transaction. After an error it is left to the next Open, which aborts what
// was not committed and finds what was: a batch of a transaction that has ended must not be sent again, it would spoil
// the sequence of the partition.
func (s *Sink) transact(ctx context.Context, p plan) error {
	partitions := map[string][]int32{}
	for _, to := range p.touched {
		partitions[to.topic.name] = append(partitions[to.topic.name], to.number)
	}
	s.inTx = true
	gone := absence{sink: s}
	err := s.persist(ctx, "begin a transaction", func(ctx context.Context) error {
		err := s.cluster.AddPartitions(ctx, s.tx(), partitions)
		if wire.Code(err) != codeUnknownTopic {
			return err
		}
		for _, to := range p.touched {
			if gone.of(ctx, to.topic) {
				return s.loses(to, "no offset: the topic was deleted")
			}
		}
		return err
	})
	if err == nil {
		err = s.send(ctx, p, s.options.TransactionalID)
	}
	if err == nil {
		err = s.persist(ctx, "commit a transaction", func(ctx context.Context) error {
			return s.cluster.EndTransaction(ctx, s.tx(), true)
		})
	}
	if err == nil {
		s.inTx = false
		return nil
	}
	var answer *wire.Error
	if errors.As(err, &answer) {
		err = s.forbidden(answer.Topic, err)
	}
	if decided(err) || ctx.Err() != nil {
		return err
	}
	return reopen("write to kafka with transactional id %s: %w: open the sink again", s.options.TransactionalID, err)
}

// abort ends the transaction that a failed Write left open, so that readers do not wait for its timeout. If its commit
// is decided already, the coordinator refuses that, which is as well.
func (s *Sink) abort(ctx context.Context) error {
	if !s.inTx {
		return nil
	}
	err := s.cluster.EndTransaction(ctx, s.tx(), false)
	if err != nil && wire.Classify(err) != wire.Retriable {
		return nil
	}
	return err
}
