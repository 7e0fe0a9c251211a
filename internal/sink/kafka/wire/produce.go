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

// Bundle has batches share requests, where one broker leads their partitions. They are of one transaction, or of none.
// Each lane brings one batch at a time, and gets the answer for it alone.
//
// What is there is sent when every lane has brought a batch or has left, by a lane for each request: so nobody waits
// for a time, and there are no further goroutines.
type Bundle struct {
	cluster *Cluster
	most    int // bytes of batches in a request, if it is not one larger batch

	mu      sync.Mutex
	lanes   int // that have not left
	width   int // of them, how many are on their way at once
	waiting []*parcel
}

// Bundle is for so many lanes, of which no more than width are on their way at once. Their contexts end together.
func (c *Cluster) Bundle(lanes, width, most int) *Bundle {
	return &Bundle{cluster: c, lanes: lanes, width: width, most: most}
}

// Produce is Cluster.Produce in a request that may be shared. With an error the lane has left: what is sent again goes
// alone, so it waits for no other lane, and none waits for it.
func (b *Bundle) Produce(ctx context.Context, request ProduceRequest) (offset int64, err error) {
	p := &parcel{ProduceRequest: request, load: make(chan []*parcel, 1)}
	if p.leader, p.err = b.cluster.leader(ctx, p.Topic, p.Partition); p.err == nil {
		b.share(ctx, p)
	}
	if p.err != nil {
		b.change(func() { b.lanes, b.width = b.lanes-1, b.width-1 })
	}
	return p.offset, p.err
}

// Leave is for a lane that has no more batches.
func (b *Bundle) Leave() { b.change(func() { b.lanes-- }) }

// share waits until the parcel is sent, or sends it with others.
func (b *Bundle) share(ctx context.Context, p *parcel) {
	b.change(func() { b.waiting = append(b.waiting, p) })
	var load []*parcel
	select {
	case load = <-p.load:
	case <-ctx.Done():
		b.change(func() {
			if i := slices.Index(b.waiting, p); i >= 0 {
				b.waiting, p.err = slices.Delete(b.waiting, i, i+1), ctx.Err()
			}
		})
		if p.err != nil {
			return
		}
		load = <-p.load
	}
	if len(load) == 0 {
		return
	}
	b.cluster.produce(ctx, load)
	for _, other := range load[1:] {
		other.load <- nil
	}
}

// change has what waits sent, if nobody else is to come after the change.
func (b *Bundle) change(by func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	by()
	if len(b.waiting) < min(b.lanes, b.width) {
		return
	}
	for _, load := range loads(b.waiting, b.most) {
		load[0].load <- load
	}
	b.waiting = nil
}

// loads sorts parcels into requests.
func loads(parcels []*parcel, most int) (all [][]*parcel) {
	slices.SortFunc(parcels, func(a, b *parcel) int {
		return cmp.Or(cmp.Compare(a.leader, b.leader), strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	size := 0
	for i, p := range parcels {
		size += len(p.Batch)
		if i == 0 || p.leader != parcels[i-1].leader || size > most {
			all, size = append(all, nil), len(p.Batch)
		}
		all[len(all)-1] = append(all[len(all)-1], p)
	}
	return all
}

// produceVersion is the newest that is spoken: it tells which record was refused (KIP-467).
const produceVersion = 8

// ProduceRequest is one record batch for one partition. It is sent with acks=all.
type ProduceRequest struct {
	Topic           string
	Partition       int32
	TransactionalID string // where the batch is part of a transaction; the broker refuses it without (53)
	Batch           []byte // one record batch in format 2
}

func (r *ProduceRequest) String() string {
	return fmt.Sprintf("produce to topic %s partition %d", r.Topic, r.Partition)
}

// Produce sends a batch to the partition's leader, once. nil says that all in-sync replicas have it. With code 7 or 20,
// a lost connection or a timeout the batch may be in the log all the same. The offset is the batch's first one, also
// where it is a repeated one that the broker has already.
func (c *Cluster) Produce(ctx context.Context, request ProduceRequest) (offset int64, err error) {
	return c.Bundle(1, 1, 0).Produce(ctx, request)
}

// parcel is a batch on its way, and what became of it.
type parcel struct {
	ProduceRequest
	leader int32
	offset int64
	err    error
	load   chan []*parcel // of a Bundle: told once what the parcel's lane has to send; nothing if another one has sent it
}

// produce sends parcels of one leader and one transaction in one request, those of a topic one after the other.
func (c *Cluster) produce(ctx context.Context, parcels []*parcel) {
	leader, request := parcels[0].leader, kmsg.NewPtrProduceRequest()
	request.Version, request.Acks, request.TimeoutMillis = produceVersion, -1, int32((c.options.Timeout / 2).Milliseconds())
	if id := parcels[0].TransactionalID; id != "" {
		request.TransactionID = &id
	}
	for _, p := range parcels {
		if n := len(request.Topics); n == 0 || request.Topics[n-1].Topic != p.Topic {
			request.Topics = append(request.Topics, kmsg.ProduceRequestTopic{Topic: p.Topic})
		}
		topic := &request.Topics[len(request.Topics)-1]
		topic.Partitions = append(topic.Partitions, kmsg.ProduceRequestTopicPartition{Partition: p.Partition, Records: p.Batch})
	}
	answer := kmsg.NewPtrProduceResponse()
	err := c.ask(ctx, leader, request, answer)
	if err == nil {
		readProduced(answer, parcels)
	}
	for _, p := range parcels {
		if err != nil {
			p.err = err
		}
		c.doubtLeader(p.Topic, p.Partition, leader, p.err)
	}
}

// readProduced gives each parcel its part of the answer.
func readProduced(answer *kmsg.ProduceResponse, parcels []*parcel) {
	for _, p := range parcels {
		p.err = fmt.Errorf("%s: the answer is not for this partition", p)
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
				p.offset, p.err = part.BaseOffset, failure.orNil()
			}
		}
	}
}
