// Package fifo orders records and holds them until a listener takes them. It plays the part of client-go's RealFIFO
// and of processorListener's pendingNotifications (tools/cache, the_real_fifo.go and shared_informer.go), with a bound.
//
// It is pure: no clock, no goroutine, no lock, no I/O. Package pipeline owns the locks.
package fifo

import (
	"sort"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Numberer gives records their Seq. The zero value starts at 1.
type Numberer struct{ last uint64 }

// Number sets the record's Seq to the next number.
func (n *Numberer) Number(rec *change.Record) {
	n.last++
	rec.Seq = n.last
}

// Last is the number given last, 0 before the first.
func (n *Numberer) Last() uint64 { return n.last }

// Limit bounds a queue or a batch. Both fields must be positive.
type Limit struct {
	Bytes   int // sum of change.Record.Size
	Records int
}

// Queue is what one listener still has to write, in order, bounded by a Limit (I6). Room is reserved before a record
// gets its Seq, so that a record that is numbered always fits. Records are pushed in the order of their Seq.
type Queue struct {
	limit   Limit
	ring    []place
	head    int
	length  int      // of the places that are in use, with a record or without
	records int      // that are queued
	used    Limit    // reserved and queued
	pending *pending // of a queue that coalesces, nil in others
}

// place is where a record waits.
type place struct {
	order uint64         // the Seq of the record that was put here first; it rises along the ring
	rec   *change.Record // nil where it was taken out
}

// NewQueue returns an empty queue.
func NewQueue(limit Limit) *Queue { return &Queue{limit: limit} }

// Reserve takes room for one record of the size, or returns false when the queue is full. A record above the whole
// limit has room when the queue is empty: it must pass, and nothing else passes beside it.
func (q *Queue) Reserve(size int) bool {
	if q.used.Records > 0 && (q.used.Bytes+size > q.limit.Bytes || q.used.Records >= q.limit.Records) {
		return false
	}
	q.take(size)
	return true
}

// ReserveFor takes room for the record. A queue that coalesces has room for whatever takes no more than what it
// replaces, also when it is full: its use exceeds the limit by that record until it is pushed.
func (q *Queue) ReserveFor(rec *change.Record) bool {
	size := rec.Size()
	if freed := q.pending.freedBy(q, rec); freed > 0 && (size <= freed || q.used.Bytes+size-freed <= q.limit.Bytes) {
		q.take(size)
		return true
	}
	return q.Reserve(size)
}

// Overdraw takes room that the queue does not have. The caller bounds by other means what is queued.
func (q *Queue) Overdraw(size int) { q.take(size) }

func (q *Queue) take(size int) {
	q.used.Bytes += size
	q.used.Records++
}

// Cancel gives a reservation back.
func (q *Queue) Cancel(size int) {
	q.used.Bytes -= size
	q.used.Records--
}

// Push appends a record whose room is reserved. It returns the records that a queue which coalesces does not hold any
// more, and whose room is free: they will never be popped. The record itself may be one of them.
func (q *Queue) Push(rec *change.Record) (merged []*change.Record) { return q.push(rec, false) }

// PushAgain is Push for a record that the sink may have been given before, by an earlier process: all deletes are kept
// then, since any of the objects may be known to the sink.
func (q *Queue) PushAgain(rec *change.Record) (merged []*change.Record) { return q.push(rec, true) }

func (q *Queue) push(rec *change.Record, again bool) (merged []*change.Record) {
	if q.pending != nil {
		return q.pending.push(q, rec, again)
	}
	q.append(rec)
	return nil
}

func (q *Queue) append(rec *change.Record) {
	if q.length == len(q.ring) {
		q.grow()
	}
	*q.at(q.length) = place{rec.Seq, rec}
	q.length++
	q.records++
}

// at is the i-th place, counted from the oldest.
func (q *Queue) at(i int) *place { return &q.ring[(q.head+i)%len(q.ring)] }

// grow makes a ring of the places that have a record, with as much room again, so that an idle queue costs nothing and
// a full one at most twice its records.
func (q *Queue) grow() {
	ring, length := make([]place, max(16, 2*q.records)), 0
	for i := range q.length {
		if p := q.at(i); p.rec != nil {
			ring[length] = *p
			length++
		}
	}
	q.ring, q.head, q.length = ring, 0, length
}

// Pop appends to dst the oldest records that fit the limit together, at least one if there is one, and frees their
// room.
func (q *Queue) Pop(dst []*change.Record, most Limit) []*change.Record {
	taken := Limit{}
	for q.length > 0 {
		p := q.at(0)
		if rec := p.rec; rec != nil {
			size := rec.Size()
			if taken.Records > 0 && (taken.Bytes+size > most.Bytes || taken.Records >= most.Records) {
				break
			}
			q.pending.popped(rec, p.order)
			q.records--
			q.Cancel(size)
			taken.Bytes += size
			taken.Records++
			dst = append(dst, rec)
		}
		*p = place{}
		q.head = (q.head + 1) % len(q.ring)
		q.length--
	}
	return dst
}

// Remove takes out the record that was pushed with the Seq and returns it, nil where it is not queued any more. Its
// room stays taken until Cancel. What comes later of its object is not merged with it.
func (q *Queue) Remove(seq uint64) *change.Record {
	p := q.queued(seq)
	if p == nil {
		return nil
	}
	q.pending.popped(p.rec, p.order)
	return q.removeAt(p)
}

// removeAt takes the record out of its place.
func (q *Queue) removeAt(p *place) *change.Record {
	rec := p.rec
	p.rec = nil
	q.records--
	return rec
}

// Order is where in the queue the record with the Seq is, which is queued: records are popped in the order that rises.
func (q *Queue) Order(seq uint64) uint64 { return q.pending.orderOf(seq) }

// queued is the place of the record with the Seq, nil where it is not queued any more.
func (q *Queue) queued(seq uint64) *place {
	p := q.find(q.pending.orderOf(seq))
	if p == nil || p.rec == nil || p.rec.Seq != seq {
		return nil
	}
	return p
}

// find is the place of the order, nil where it is not in use any more.
func (q *Queue) find(order uint64) *place {
	i := sort.Search(q.length, func(i int) bool { return q.at(i).order >= order })
	if i == q.length || q.at(i).order != order {
		return nil
	}
	return q.at(i)
}

// Len is the number of queued records.
func (q *Queue) Len() int { return q.records }

// Used is what is reserved and queued.
func (q *Queue) Used() Limit { return q.used }

// Oldest is the record that was pushed first, nil in an empty queue. Where the queue coalesces another one may be next.
func (q *Queue) Oldest() *change.Record {
	if q.pending != nil {
		return q.pending.oldest(q)
	}
	for i := range q.length {
		if rec := q.at(i).rec; rec != nil {
			return rec
		}
	}
	return nil
}
