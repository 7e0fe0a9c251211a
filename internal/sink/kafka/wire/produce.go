package wire

import (
	"context"
	"time"
)

// ProduceRequest is one record batch for one partition. It is sent with acks=all.
type ProduceRequest struct {
	Topic           string
	Partition       int32
	TransactionalID string // where the batch is part of a transaction; the broker refuses it without (53)

	// Batch is one record batch in format 2. After an error it may still be read by a connection that has not ended
	// yet: it must not be changed or used again for anything but the same bytes.
	Batch []byte
}

// ProduceResult is the broker's answer.
type ProduceResult struct {
	BaseOffset    int64     // of the batch, also where it is a repeated one that the broker has already
	LogAppendTime time.Time // zero, unless the topic takes its own time
}

// Produce sends a batch to the partition's leader, once. nil says that all in-sync replicas have it. With code 7, 19 or
// 20, a lost connection or a timeout the batch may be in the log all the same.
func (c *Cluster) Produce(ctx context.Context, request ProduceRequest) (ProduceResult, error) {
	return ProduceResult{}, errNotBuilt
}
