package wire

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
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
// theirs is aborted; code 51 while that goes on. Timeout is that of a transaction, after which the coordinator aborts
// it. Previous is NoProducer, or the producer whose epoch is to be raised (KIP-360), which fails with code 90 where
// somebody else has raised it. Without a transactional id it is idempotent only, and any broker answers; timeout means
// nothing then.
func (c *Cluster) InitProducer(ctx context.Context, transactionalID string, timeout time.Duration, previous Producer) (Producer, error) {
	request := kmsg.NewPtrInitProducerIDRequest()
	request.TransactionTimeoutMillis = int32(min(timeout.Milliseconds(), 1<<31-1))
	request.ProducerID, request.ProducerEpoch = previous.ID, previous.Epoch
	k, failure := keeper{transactional, transactionalID}, &Error{Request: "get a producer id", Needs: "WRITE on the topics, or IDEMPOTENT_WRITE on the cluster"}
	if transactionalID != "" {
		request.TransactionalID = &transactionalID
		failure.Request, failure.Needs = "get a producer id for transactional id "+transactionalID, k.needs()
	}
	var made Producer
	err := askCoordinator(ctx, c, k, request, func(answer *kmsg.InitProducerIDResponse) error {
		if failure.Code = answer.ErrorCode; failure.Code != 0 {
			return failure
		}
		made = Producer{ID: answer.ProducerID, Epoch: answer.ProducerEpoch}
		return nil
	})
	return made, err
}

// AddPartitions makes partitions part of the open transaction, or begins one with them. It must come before the first
// batch to each of them.
func (c *Cluster) AddPartitions(ctx context.Context, tx Tx, partitions map[string][]int32) error {
	request := kmsg.NewPtrAddPartitionsToTxnRequest()
	request.TransactionalID, request.ProducerID, request.ProducerEpoch = tx.TransactionalID, tx.Producer.ID, tx.Producer.Epoch
	for _, topic := range slices.Sorted(maps.Keys(partitions)) {
		request.Topics = append(request.Topics, kmsg.AddPartitionsToTxnRequestTopic{Topic: topic, Partitions: partitions[topic]})
	}
	k := keeper{transactional, tx.TransactionalID}
	return askCoordinator(ctx, c, k, request, func(answer *kmsg.AddPartitionsToTxnResponse) error {
		found := &Error{} // the first that is a partition's own: the others are only told that nothing was attempted
		for _, topic := range answer.Topics {
			for _, partition := range topic.Partitions {
				if partition.ErrorCode == 0 || found.Code != 0 && found.Code != kerr.OperationNotAttempted.Code {
					continue
				}
				found = &Error{Code: partition.ErrorCode, Needs: "WRITE on topic " + topic.Topic, Topic: topic.Topic,
					Request: fmt.Sprintf("add topic %s partition %d to the transaction of %s", topic.Topic, partition.Partition, k.id)}
				if found.Code == kerr.TransactionalIDAuthorizationFailed.Code {
					found.Needs = k.needs()
				}
			}
		}
		return found.orNil()
	})
}

// EndTransaction commits or aborts. nil says that the decision is durable, not that readers see it yet.
func (c *Cluster) EndTransaction(ctx context.Context, tx Tx, commit bool) error {
	k, verb := keeper{transactional, tx.TransactionalID}, "abort"
	if commit {
		verb = "commit"
	}
	request := kmsg.NewPtrEndTxnRequest()
	request.TransactionalID, request.ProducerID, request.ProducerEpoch, request.Commit = k.id, tx.Producer.ID, tx.Producer.Epoch, commit
	return askCoordinator(ctx, c, k, request, func(answer *kmsg.EndTxnResponse) error {
		return (&Error{Code: answer.ErrorCode, Request: verb + " the transaction of " + k.id, Needs: k.needs()}).orNil()
	})
}

// TransactionTimeout asks the coordinator which timeout came with the last InitProducer of the transactional id that
// was answered with a producer (KIP-664). Brokers before 3.0 do not say: code 35.
func (c *Cluster) TransactionTimeout(ctx context.Context, transactionalID string) (timeout time.Duration, err error) {
	k, request := keeper{transactional, transactionalID}, kmsg.NewPtrDescribeTransactionsRequest()
	request.TransactionalIDs = []string{transactionalID}
	err = askCoordinator(ctx, c, k, request, func(answer *kmsg.DescribeTransactionsResponse) error {
		what, states := "describe the transactions of "+transactionalID, answer.TransactionStates
		if len(states) != 1 {
			return fmt.Errorf("%s: the answer has %d transactional ids", what, len(states))
		}
		timeout = time.Duration(states[0].TimeoutMillis) * time.Millisecond
		return (&Error{Code: states[0].ErrorCode, Request: what, Needs: "DESCRIBE on " + k.of + " " + k.id}).orNil()
	})
	return timeout, err
}
