package kafka

import (
	"context"
	"maps"
	"slices"

	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// hold sees to it, before something is written, that nobody else can write: not to topics that are new here, and not
// because the coordinator has forgotten who has the right.
func (r *right) hold(ctx context.Context) error {
	if !r.owned || r.options.Delivery == Transactional {
		return nil
	}
	if r.known.fresh {
		if err := r.fence(ctx, slices.Collect(maps.Values(r.known.topics))); err != nil {
			return err
		}
		r.known.fresh = false
	}
	if r.now().Sub(r.renewed) < r.tuning.renewal {
		return nil
	}
	return r.renew(ctx)
}

// fence shuts out of the topics whoever had the right to write before, in idempotent delivery.
//
// A partition compares the epoch of every batch with the newest that it knows of the producer (KIP-98), and learns of
// ours by the markers of a transaction that has nothing in it. From then on nothing of an older epoch can come, however
// long it lay in a socket, so what the partitions hold is final. That a new epoch is handed out tells that all markers
// are written. Readers see nothing of it; offsets move by one.
func (r *right) fence(ctx context.Context, topics []*topic) error {
	partitions := map[string][]int32{}
	for _, t := range topics {
		for _, p := range t.partitions {
			if !t.fenced {
				partitions[t.name] = append(partitions[t.name], p.number)
			}
		}
	}
	if len(partitions) > 0 && r.owned && r.options.Delivery == Idempotent {
		if err := r.raiseOwn(ctx, topics, partitions); err != nil {
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
func (r *right) raiseOwn(ctx context.Context, topics []*topic, partitions map[string][]int32) error {
	for {
		err := r.raiseEpoch(ctx, topics, partitions)
		if decided(err) || wire.Classify(err) != wire.Fenced {
			return err
		}
		r.again(err)
		if err := r.persist(ctx, "open transactional id "+r.options.TransactionalID, r.keep); err != nil {
			return err
		}
	}
}

// raiseEpoch makes the partitions know our epoch, and gets the next one.
func (r *right) raiseEpoch(ctx context.Context, topics []*topic, partitions map[string][]int32) error {
	tx, gone := r.tx(), absence{brokers: r.brokers}
	err := r.persist(ctx, "fence the topics", func(ctx context.Context) error {
		err := r.cluster.AddPartitions(ctx, tx, partitions)
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
		err = r.persist(ctx, "fence the topics", func(ctx context.Context) error { return r.cluster.EndTransaction(ctx, tx, false) })
	}
	if err == nil {
		err = r.persist(ctx, "fence the topics", r.keep)
	}
	return err
}
