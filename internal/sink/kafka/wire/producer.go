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
	broker, what, needs := anyBroker, "get a producer id", "WRITE on the topics, or IDEMPOTENT_WRITE on the cluster"
	if transactionalID != "" {
		var err error
		if broker, err = c.coordinator(ctx, transactionalID); err != nil {
			return Producer{}, err
		}
		what, needs = "get a producer id for transactional id "+transactionalID, writeOn(transactionalID)
	}
	answer, err := ask[*initproducerid.Response](ctx, c.link, broker, request)
	if err == nil && answer.ErrorCode != 0 {
		err = &Error{Code: answer.ErrorCode, Request: what, Needs: needs}
	}
	if err != nil {
		c.doubtCoordinator(transactionalID, err)
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
	answer, err := askCoordinator[*addpartitionstotxn.Response](ctx, c.leaders, tx.TransactionalID, request)
	if err != nil {
		return err
	}
	err = addError(tx, answer)
	c.doubtCoordinator(tx.TransactionalID, err)
	return err
}

// addError is the first error of a partition that is its own: the others are only told that nothing was attempted.
func addError(tx Tx, answer *addpartitionstotxn.Response) error {
	var found *Error
	for _, topic := range answer.Results {
		for _, partition := range topic.Results {
			if partition.ErrorCode == 0 || found != nil && found.Code != codeNotAttempted {
				continue
			}
			found = &Error{Code: partition.ErrorCode, Needs: "WRITE on topic " + topic.Name, Topic: topic.Name,
				Request: fmt.Sprintf("add topic %s partition %d to the transaction of %s", topic.Name, partition.PartitionIndex, tx.TransactionalID)}
			if partition.ErrorCode == codeTransactionalIDDenied {
				found.Needs = writeOn(tx.TransactionalID)
			}
		}
	}
	if found == nil {
		return nil
	}
	return found
}

// EndTransaction commits or aborts. nil says that the decision is durable, not that readers see it yet.
func (c *Cluster) EndTransaction(ctx context.Context, tx Tx, commit bool) error {
	answer, err := askCoordinator[*endtxn.Response](ctx, c.leaders, tx.TransactionalID, &endtxn.Request{TransactionalID: tx.TransactionalID,
		ProducerID: tx.Producer.ID, ProducerEpoch: tx.Producer.Epoch, Committed: commit})
	if err != nil || answer.ErrorCode == 0 {
		return err
	}
	verb := map[bool]string{true: "commit", false: "abort"}[commit]
	err = &Error{Code: answer.ErrorCode, Request: verb + " the transaction of " + tx.TransactionalID, Needs: writeOn(tx.TransactionalID)}
	c.doubtCoordinator(tx.TransactionalID, err)
	return err
}

// TransactionTimeout asks the coordinator which timeout came with the last InitProducer of the transactional id that
// was answered with a producer (KIP-664). Brokers before 3.0 do not say: code 35.
func (c *Cluster) TransactionTimeout(ctx context.Context, transactionalID string) (timeout time.Duration, err error) {
	broker, err := c.coordinator(ctx, transactionalID)
	if err != nil {
		return 0, err
	}
	defer func() { c.doubtCoordinator(transactionalID, err) }()
	question := kmsg.NewPtrDescribeTransactionsRequest()
	question.TransactionalIDs = []string{transactionalID}
	answer, err := askFlexible[*kmsg.DescribeTransactionsResponse](ctx, c.link, broker, question)
	if err != nil {
		return 0, err
	}
	what, states := "describe the transactions of "+transactionalID, answer.TransactionStates
	if len(states) != 1 {
		return 0, fmt.Errorf("%s: the answer has %d transactional ids", what, len(states))
	}
	if code := states[0].ErrorCode; code != 0 {
		return 0, &Error{Code: code, Request: what, Needs: "DESCRIBE on transactional id " + transactionalID}
	}
	return time.Duration(states[0].TimeoutMillis) * time.Millisecond, nil
}
