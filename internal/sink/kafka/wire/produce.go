package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/segmentio/kafka-go/protocol"
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
func (b *Bundle) Produce(ctx context.Context, request ProduceRequest) (ProduceResult, error) {
	p := &parcel{ProduceRequest: request, load: make(chan []*parcel, 1)}
	if p.leader, p.err = b.cluster.leader(ctx, p.Topic, p.Partition); p.err == nil {
		b.share(ctx, p)
	}
	if p.err != nil {
		b.change(func() { b.lanes, b.width = b.lanes-1, b.width-1 })
	}
	return p.result, p.err
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
		if b.takeBack(p) {
			p.err = ctx.Err()
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

// takeBack says whether the parcel was still waiting.
func (b *Bundle) takeBack(p *parcel) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.waiting, p)
	if i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	}
	return i >= 0
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
func loads(parcels []*parcel, most int) [][]*parcel {
	slices.SortFunc(parcels, func(a, b *parcel) int {
		return cmp.Or(cmp.Compare(a.leader, b.leader), strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return cut(parcels, func(begun []*parcel, next *parcel) bool {
		size := len(next.Batch)
		for _, p := range begun {
			size += len(p.Batch)
		}
		return next.leader == begun[0].leader && size <= most
	})
}

// smallBatch is written in one piece with the request around it, at the price of a copy.
const smallBatch = 16 << 10

var errElsewhere = errors.New("the answer is not for this partition")

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
	BaseOffset int64 // of the batch, also where it is a repeated one that the broker has already
}

func (r *ProduceRequest) String() string {
	return fmt.Sprintf("produce to topic %s partition %d", r.Topic, r.Partition)
}

// Produce sends a batch to the partition's leader, once. nil says that all in-sync replicas have it. With code 7 or 20,
// a lost connection or a timeout the batch may be in the log all the same.
func (c *Cluster) Produce(ctx context.Context, request ProduceRequest) (ProduceResult, error) {
	p := parcel{ProduceRequest: request}
	if p.leader, p.err = c.leader(ctx, p.Topic, p.Partition); p.err == nil {
		c.produce(ctx, []*parcel{&p})
	}
	return p.result, p.err
}

// parcel is a batch on its way, and what became of it.
type parcel struct {
	ProduceRequest
	leader int32
	result ProduceResult
	err    error
	load   chan []*parcel // of a Bundle: told once what the parcel's lane has to send; nothing if another one has sent it
}

// produce sends parcels of one leader and one transaction in one request, those of a topic one after the other.
func (c *Cluster) produce(ctx context.Context, parcels []*parcel) {
	leader := parcels[0].leader
	answer, err := c.send(ctx, &exchange{api: protocol.Produce, broker: leader, talk: func(rw io.ReadWriter, version int16) (protocol.Message, error) {
		return c.talkProduce(rw, version, parcels)
	}})
	for _, p := range parcels {
		p.err = err
	}
	if message, ok := answer.(*versioned); ok {
		c.throttles.note(leader, lastOf(message.body))
		readProduced(message, parcels)
	}
	for _, p := range parcels {
		c.doubtLeader(asked{partition{p.Topic, p.Partition}, leader}, p.err)
	}
}

func (l *link) talkProduce(rw io.ReadWriter, version int16, parcels []*parcel) (protocol.Message, error) {
	if version < 3 { // KIP-98: record batches of format 2, transactional ids
		return nil, &Error{Code: codeUnsupportedVersion, Request: parcels[0].String(), Message: "the broker does not know record batches"}
	}
	serial := l.serial.Add(1)
	head := header(protocol.Produce, version, serial, l.options.ClientID).
		nullable(parcels[0].TransactionalID).
		int16(-1). // acks: all
		int32(int32((l.options.Timeout / 2).Milliseconds()))
	for _, part := range produceParts(head, parcels) {
		if _, err := rw.Write(part); err != nil {
			return nil, err
		}
	}
	answer, err := readFrame(rw, protocol.Produce, serial)
	if err != nil {
		return nil, err
	}
	return &versioned{answer.(*frame), version}, nil
}

// produceParts is the request, which begins with the head: small batches are copied, and large ones are parts of their
// own.
func produceParts(head output, parcels []*parcel) (parts [][]byte) {
	topics := cut(parcels, func(begun []*parcel, next *parcel) bool { return begun[0].Topic == next.Topic })
	next, size := head.int32(int32(len(topics))), 0
	for _, topic := range topics {
		next = next.text(topic[0].Topic).int32(int32(len(topic)))
		for _, p := range topic {
			next = next.int32(p.Partition).int32(int32(len(p.Batch)))
			if len(p.Batch) <= smallBatch {
				next = append(next, p.Batch...)
				continue
			}
			parts, size, next = append(parts, next, p.Batch), size+len(next)+len(p.Batch), nil
		}
	}
	if len(next) > 0 {
		parts, size = append(parts, next), size+len(next)
	}
	output(parts[0]).finish(size - len(parts[0]))
	return parts
}

// versioned is an answer whose fields depend on the version.
type versioned struct {
	*frame
	version int16
}

// readProduced reads the answer, of version 3 to 8. Each parcel gets its part.
func readProduced(message *versioned, parcels []*parcel) {
	for _, p := range parcels {
		p.err = errElsewhere
	}
	in := &input{rest: message.body}
	for range in.count(6) {
		topic := in.text()
		for range in.count(22) {
			number, result, answer := in.produced(message.version)
			for _, p := range parcels {
				if p.Topic == topic && p.Partition == number {
					p.answered(result, answer)
				}
			}
		}
	}
	for _, p := range parcels {
		if in.err != nil || errors.Is(p.err, errElsewhere) {
			p.err = fmt.Errorf("%s: %w", p, cmp.Or(in.err, p.err))
		}
	}
}

// produced reads one partition's part of an answer.
func (i *input) produced(version int16) (number int32, result ProduceResult, answer Error) {
	number, answer.Code, result.BaseOffset = i.int32(), i.int16(), i.int64()
	i.int64() // when the log took it
	if version >= 5 {
		i.int64() // start of the log
	}
	if version >= 8 {
		answer.Records = i.records()
		answer.Message = i.text()
	}
	return number, result, answer
}

func (p *parcel) answered(result ProduceResult, answer Error) {
	p.result, p.err = result, nil
	if answer.Code == 0 {
		return
	}
	answer.Request, answer.Needs = p.String(), "WRITE on topic "+p.Topic
	if answer.Code == codeTransactionalIDDenied {
		answer.Needs = writeOn(p.TransactionalID)
	}
	p.err = &answer
}

// records are those of a refused batch that it was refused for (KIP-467).
func (i *input) records() map[int]string {
	n := i.count(6)
	if n == 0 {
		return nil
	}
	records := make(map[int]string, n)
	for range n {
		index := i.int32()
		records[int(index)] = i.text()
	}
	return records
}

// cut begins anew wherever the next parcel does not fit to those before.
func cut(parcels []*parcel, fits func(begun []*parcel, next *parcel) bool) (all [][]*parcel) {
	from := 0
	for i := range parcels {
		if i > 0 && !fits(parcels[from:i], parcels[i]) {
			all, from = append(all, parcels[from:i]), i
		}
	}
	if len(parcels) > 0 {
		all = append(all, parcels[from:])
	}
	return all
}
