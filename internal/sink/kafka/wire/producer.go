package wire

import (
	"context"
	"time"
)

// Producer is the identity under which a broker counts sequences.
type Producer struct {
	ID    int64
	Epoch int16
}

// NoProducer is the Producer that is none.
func NoProducer() Producer { return Producer{ID: -1, Epoch: -1} }

// Tx names the transactions of one producer.
type Tx struct {
	TransactionalID string
	Producer        Producer
}

// InitProducer gets a producer id. With a transactional id it fences whoever had it before, and an open transaction of
// theirs is aborted.
// Timeout is that of a transaction, after which the coordinator aborts it. Previous is NoProducer, or the producer whose
// epoch is to be raised (KIP-360), which fails with code 90 where somebody else has raised it. Without a transactional
// id it is idempotent only, and any broker answers; timeout means nothing then.
func (c *Cluster) InitProducer(ctx context.Context, transactionalID string, timeout time.Duration, previous Producer) (Producer, error) {
	return Producer{}, errNotBuilt
}

// AddPartitions makes partitions part of the open transaction, or begins one with them. It must come before the first
// batch to each of them.
func (c *Cluster) AddPartitions(ctx context.Context, tx Tx, partitions map[string][]int32) error {
	return errNotBuilt
}

// EndTransaction commits or aborts. nil says that the decision is durable, not that readers see it yet.
func (c *Cluster) EndTransaction(ctx context.Context, tx Tx, commit bool) error { return errNotBuilt }
