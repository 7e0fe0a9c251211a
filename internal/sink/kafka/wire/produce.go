package wire

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

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
					failure.Needs = keeper{transactional, p.TransactionalID}.needs()
				}
				p.Offset, p.Err = part.BaseOffset, failure.orNil()
			}
		}
	}
}
