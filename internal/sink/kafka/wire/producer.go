package wire

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go/protocol/addpartitionstotxn"
	"github.com/segmentio/kafka-go/protocol/endtxn"
	"github.com/segmentio/kafka-go/protocol/initproducerid"
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
	request := &initproducerid.Request{TransactionalID: transactionalID, TransactionTimeoutMs: int32(min(timeout.Milliseconds(), 1<<31-1)),
		ProducerID: previous.ID, ProducerEpoch: previous.Epoch}
	k, failure := keeper{transactional, transactionalID}, &Error{Request: "get a producer id", Needs: "WRITE on the topics, or IDEMPOTENT_WRITE on the cluster"}
	if transactionalID != "" {
		failure.Request, failure.Needs = "get a producer id for transactional id "+transactionalID, k.needs()
	}
	answer, err := askCoordinator(ctx, c, k, request, func(answer *initproducerid.Response) error {
		failure.Code = answer.ErrorCode
		return failure.orNil()
	})
	if err != nil {
		return Producer{}, err
	}
	return Producer{ID: answer.ProducerID, Epoch: answer.ProducerEpoch}, nil
}

// AddPartitions makes partitions part of the open transaction, or begins one with them. It must come before the first
// batch to each of them.
func (c *Cluster) AddPartitions(ctx context.Context, tx Tx, partitions map[string][]int32) error {
	request := &addpartitionstotxn.Request{TransactionalID: tx.TransactionalID, ProducerID: tx.Producer.ID, ProducerEpoch: tx.Producer.Epoch}
	for topic, numbers := range partitions {
		request.Topics = append(request.Topics, addpartitionstotxn.RequestTopic{Name: topic, Partitions: numbers})
	}
	slices.SortFunc(request.Topics, func(a, b addpartitionstotxn.RequestTopic) int { return strings.Compare(a.Name, b.Name) })
	k := keeper{transactional, tx.TransactionalID}
	_, err := askCoordinator(ctx, c, k, request, func(answer *addpartitionstotxn.Response) error {
		found := &Error{} // the first that is a partition's own: the others are only told that nothing was attempted
		for _, topic := range answer.Results {
			for _, partition := range topic.Results {
				if partition.ErrorCode == 0 || found.Code != 0 && found.Code != kerr.OperationNotAttempted.Code {
					continue
				}
				found = &Error{Code: partition.ErrorCode, Needs: "WRITE on topic " + topic.Name, Topic: topic.Name,
					Request: fmt.Sprintf("add topic %s partition %d to the transaction of %s", topic.Name, partition.PartitionIndex, k.id)}
				if found.Code == kerr.TransactionalIDAuthorizationFailed.Code {
					found.Needs = k.needs()
				}
			}
		}
		return found.orNil()
	})
	return err
}

// EndTransaction commits or aborts. nil says that the decision is durable, not that readers see it yet.
func (c *Cluster) EndTransaction(ctx context.Context, tx Tx, commit bool) error {
	k, verb := keeper{transactional, tx.TransactionalID}, "abort"
	if commit {
		verb = "commit"
	}
	request := &endtxn.Request{TransactionalID: k.id, ProducerID: tx.Producer.ID, ProducerEpoch: tx.Producer.Epoch, Committed: commit}
	_, err := askCoordinator(ctx, c, k, request, func(answer *endtxn.Response) error {
		return (&Error{Code: answer.ErrorCode, Request: verb + " the transaction of " + k.id, Needs: k.needs()}).orNil()
	})
	return err
}

// TransactionTimeout asks the coordinator which timeout came with the last InitProducer of the transactional id that
// was answered with a producer (KIP-664). Brokers before 3.0 do not say: code 35.
func (c *Cluster) TransactionTimeout(ctx context.Context, transactionalID string) (timeout time.Duration, err error) {
	k := keeper{transactional, transactionalID}
	broker, err := c.coordinator(ctx, k)
	if err != nil {
		return 0, err
	}
	defer func() { c.doubtCoordinator(k, err) }()
	question := kmsg.NewPtrDescribeTransactionsRequest()
	question.TransactionalIDs = []string{transactionalID}
	answer, err := askNewer[*kmsg.DescribeTransactionsResponse](ctx, c.link, broker, question)
	if err != nil {
		return 0, err
	}
	what, states := "describe the transactions of "+transactionalID, answer.TransactionStates
	if len(states) != 1 {
		return 0, fmt.Errorf("%s: the answer has %d transactional ids", what, len(states))
	}
	err = (&Error{Code: states[0].ErrorCode, Request: what, Needs: "DESCRIBE on " + k.of + " " + k.id}).orNil()
	return time.Duration(states[0].TimeoutMillis) * time.Millisecond, err
}
