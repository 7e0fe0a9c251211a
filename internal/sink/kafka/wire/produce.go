package wire

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/segmentio/kafka-go/protocol"
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

// produceVersion is the newest that is spoken: later ones are flexible (KIP-482).
const produceVersion = 8

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
	answer, err := c.send(ctx, &exchange{api: protocol.Produce, broker: leader, talk: func(rw io.ReadWriter, version int16) (any, error) {
		return c.talkProduce(rw, version, parcels)
	}})
	for _, p := range parcels {
		p.err = err
	}
	if produced, ok := answer.(*kmsg.ProduceResponse); ok {
		readProduced(produced, parcels)
	}
	for _, p := range parcels {
		c.doubtLeader(asked{partition{p.Topic, p.Partition}, leader}, p.err)
	}
}

func (l *link) talkProduce(rw io.ReadWriter, version int16, parcels []*parcel) (any, error) {
	if version < 3 { // KIP-98: record batches of format 2, transactional ids
		return nil, &Error{Code: codeUnsupportedVersion, Request: parcels[0].String(), Message: "the broker does not know record batches"}
	}
	request := kmsg.ProduceRequest{Version: min(version, produceVersion), Acks: -1, TimeoutMillis: int32((l.options.Timeout / 2).Milliseconds())}
	if id := parcels[0].TransactionalID; id != "" {
		request.TransactionID = &id
	}
	serial := l.serial.Add(1)
	head := l.format(&request, serial)
	for _, part := range produceParts(head[:len(head)-4], parcels) { // without the number of topics, none
		if _, err := rw.Write(part); err != nil {
			return nil, err
		}
	}
	return readAnswer(rw, serial, request.ResponseKind())
}

// output is what kmsg would copy: the part of a request that has the batches.
type output []byte

func (o output) int32(v int32) output { return binary.BigEndian.AppendUint32(o, uint32(v)) }

func (o output) text(v string) output {
	return append(binary.BigEndian.AppendUint16(o, uint16(len(v))), v...)
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
	binary.BigEndian.PutUint32(parts[0], uint32(size-4))
	return parts
}

// readProduced gives each parcel its part of the answer.
func readProduced(answer *kmsg.ProduceResponse, parcels []*parcel) {
	for _, p := range parcels {
		p.err = errElsewhere
	}
	for i := range answer.Topics {
		for j := range answer.Topics[i].Partitions {
			part := &answer.Topics[i].Partitions[j]
			for _, p := range parcels {
				if p.Topic == answer.Topics[i].Topic && p.Partition == part.Partition {
					p.answered(part)
				}
			}
		}
	}
	for _, p := range parcels {
		if errors.Is(p.err, errElsewhere) {
			p.err = fmt.Errorf("%s: %w", p, p.err)
		}
	}
}

func (p *parcel) answered(part *kmsg.ProduceResponseTopicPartition) {
	p.result, p.err = ProduceResult{part.BaseOffset}, nil
	if part.ErrorCode == 0 {
		return
	}
	answer := &Error{Code: part.ErrorCode, Message: textOf(part.ErrorMessage), Request: p.String(), Needs: "WRITE on topic " + p.Topic}
	if answer.Code == codeTransactionalIDDenied {
		answer.Needs = writeOn(p.TransactionalID)
	}
	for _, refused := range part.ErrorRecords { // KIP-467
		if answer.Records == nil {
			answer.Records = map[int]string{}
		}
		answer.Records[int(refused.RelativeOffset)] = textOf(refused.ErrorMessage)
	}
	p.err = answer
}

func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
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
