package wire

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ProduceRequest is one record batch for one partition, and what became of it. It is sent with acks=all.
type ProduceRequest struct {
	Topic           string
	Partition       int32
	TransactionalID string // where the batch is part of a transaction; the broker refuses it without (53)
	Batch           []byte // one record batch in format 2

	// Err is nil where all in-sync replicas have it. With code 7 or 20, a lost connection or a timeout the batch may be
	// in the log all the same.
	Err    error
	Offset int64 // the batch's first one, also where it is a repeated one that the broker has already
	leader int32
}

func (r *ProduceRequest) String() string {
	return fmt.Sprintf("produce to topic %s partition %d", r.Topic, r.Partition)
}

// ProduceAll sends each batch to its partition's leader, once. They are of one transaction, or of none. Those to one
// leader share requests with so many bytes of batches, if it is not one larger batch.
func (c *Cluster) ProduceAll(ctx context.Context, batches []*ProduceRequest, most int) {
	var group sync.WaitGroup
	for _, b := range batches {
		group.Go(func() { b.leader, b.Err = c.leader(ctx, b.Topic, b.Partition) })
	}
	group.Wait()
	located := slices.DeleteFunc(slices.Clone(batches), func(b *ProduceRequest) bool { return b.Err != nil })
	for _, load := range loads(located, most) {
		group.Go(func() { c.produce(ctx, load) })
	}
	group.Wait()
}

// Produce sends one batch.
func (c *Cluster) Produce(ctx context.Context, request ProduceRequest) (offset int64, err error) {
	c.ProduceAll(ctx, []*ProduceRequest{&request}, 0)
	return request.Offset, request.Err
}

// loads sorts batches into requests.
func loads(batches []*ProduceRequest, most int) (all [][]*ProduceRequest) {
	slices.SortFunc(batches, func(a, b *ProduceRequest) int {
		return cmp.Or(cmp.Compare(a.leader, b.leader), strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	size := 0
	for i, p := range batches {
		size += len(p.Batch)
		if i == 0 || p.leader != batches[i-1].leader || size > most {
			all, size = append(all, nil), len(p.Batch)
		}
		all[len(all)-1] = append(all[len(all)-1], p)
	}
	return all
}

// produceVersion is the newest that is spoken: it tells which record was refused (KIP-467).
const produceVersion = 8

// produce sends batches of one leader and one transaction in one request, those of a topic one after the other.
func (c *Cluster) produce(ctx context.Context, batches []*ProduceRequest) {
	leader, request := batches[0].leader, kmsg.NewPtrProduceRequest()
	request.Version, request.Acks, request.TimeoutMillis = produceVersion, -1, int32((c.options.Timeout / 2).Milliseconds())
	if id := batches[0].TransactionalID; id != "" {
		request.TransactionID = &id
	}
	for _, p := range batches {
		if n := len(request.Topics); n == 0 || request.Topics[n-1].Topic != p.Topic {
			request.Topics = append(request.Topics, kmsg.ProduceRequestTopic{Topic: p.Topic})
		}
		topic := &request.Topics[len(request.Topics)-1]
		topic.Partitions = append(topic.Partitions, kmsg.ProduceRequestTopicPartition{Partition: p.Partition, Records: p.Batch})
	}
	answer := kmsg.NewPtrProduceResponse()
	err := c.ask(ctx, leader, request, answer)
	if err == nil {
		readProduced(answer, batches)
	}
	for _, p := range batches {
		if err != nil {
			p.Err = err
		}
		c.doubtLeader(p.Topic, p.Partition, leader, p.Err)
	}
}

// readProduced gives each batch its part of the answer.
func readProduced(answer *kmsg.ProduceResponse, batches []*ProduceRequest) {
	for _, p := range batches {
		p.Err = fmt.Errorf("%s: the answer is not for this partition", p)
		for _, topic := range answer.Topics {
			for i := range topic.Partitions {
				part := &topic.Partitions[i]
				if p.Topic != topic.Topic || p.Partition != part.Partition {
					continue
				}
				failure := &Error{Code: part.ErrorCode, Message: textOf(part.ErrorMessage), Request: p.String(), Needs: "WRITE on topic " + p.Topic}
				if failure.Code == kerr.TransactionalIDAuthorizationFailed.Code {
					failure.Needs = needsOf(p.TransactionalID)
				}
				p.Offset, p.Err = part.BaseOffset, failure.orNil()
			}
		}
	}
}

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
	failure := &Error{Request: "get a producer id", Needs: "WRITE on the topics, or IDEMPOTENT_WRITE on the cluster"}
	if transactionalID != "" {
		request.TransactionalID = &transactionalID
		failure.Request, failure.Needs = "get a producer id for transactional id "+transactionalID, needsOf(transactionalID)
	}
	var made Producer
	err := askCoordinator(ctx, c, transactionalID, request, func(answer *kmsg.InitProducerIDResponse) error {
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
	return askCoordinator(ctx, c, tx.TransactionalID, request, func(answer *kmsg.AddPartitionsToTxnResponse) error {
		found := &Error{} // the first that is a partition's own: the others are only told that nothing was attempted
		for _, topic := range answer.Topics {
			for _, partition := range topic.Partitions {
				if partition.ErrorCode == 0 || found.Code != 0 && found.Code != kerr.OperationNotAttempted.Code {
					continue
				}
				found = &Error{Code: partition.ErrorCode, Needs: "WRITE on topic " + topic.Topic, Topic: topic.Topic,
					Request: fmt.Sprintf("add topic %s partition %d to the transaction of %s", topic.Topic, partition.Partition, tx.TransactionalID)}
				if found.Code == kerr.TransactionalIDAuthorizationFailed.Code {
					found.Needs = needsOf(tx.TransactionalID)
				}
			}
		}
		return found.orNil()
	})
}

// EndTransaction commits or aborts. nil says that the decision is durable, not that readers see it yet.
func (c *Cluster) EndTransaction(ctx context.Context, tx Tx, commit bool) error {
	verb := "abort"
	if commit {
		verb = "commit"
	}
	request := kmsg.NewPtrEndTxnRequest()
	request.TransactionalID, request.ProducerID, request.ProducerEpoch, request.Commit = tx.TransactionalID, tx.Producer.ID, tx.Producer.Epoch, commit
	return askCoordinator(ctx, c, tx.TransactionalID, request, func(answer *kmsg.EndTxnResponse) error {
		return (&Error{Code: answer.ErrorCode, Request: verb + " the transaction of " + tx.TransactionalID, Needs: needsOf(tx.TransactionalID)}).orNil()
	})
}

// TransactionTimeout asks the coordinator which timeout came with the last InitProducer of the transactional id that
// was answered with a producer (KIP-664). Brokers before 3.0 do not say: code 35.
func (c *Cluster) TransactionTimeout(ctx context.Context, transactionalID string) (timeout time.Duration, err error) {
	request := kmsg.NewPtrDescribeTransactionsRequest()
	request.TransactionalIDs = []string{transactionalID}
	err = askCoordinator(ctx, c, transactionalID, request, func(answer *kmsg.DescribeTransactionsResponse) error {
		what, states := "describe the transactions of "+transactionalID, answer.TransactionStates
		if len(states) != 1 {
			return fmt.Errorf("%s: the answer has %d transactional ids", what, len(states))
		}
		timeout = time.Duration(states[0].TimeoutMillis) * time.Millisecond
		return (&Error{Code: states[0].ErrorCode, Request: what, Needs: "DESCRIBE on transactional id " + transactionalID}).orNil()
	})
	return timeout, err
}
