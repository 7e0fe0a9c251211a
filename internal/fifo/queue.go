// Package fifo orders records and holds them until a listener takes them. It plays the part of client-go's RealFIFO
// and of processorListener's pendingNotifications (tools/cache, the_real_fifo.go and shared_informer.go), with a bound.
//
// It is pure: no clock, no goroutine, no lock, no I/O. Package pipeline owns the locks.
package fifo

import "github.com/kubecdc/kubecdc/internal/change"

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
// gets its Seq, so that a record that is numbered always fits.
type Queue struct {
	limit  Limit
	ring   []*change.Record
	head   int
	length int
	used   Limit // reserved and queued
}

// NewQueue returns an empty queue.
func NewQueue(limit Limit) *Queue { return &Queue{limit: limit} }

// Reserve takes room for one record of the size, or returns false when the queue is full. A record above the whole
// limit has room when the queue is empty: it must pass, and nothing else passes beside it.
func (q *Queue) Reserve(size int) bool {
	if q.used.Records > 0 && (q.used.Bytes+size > q.limit.Bytes || q.used.Records >= q.limit.Records) {
		return false
	}
	q.used.Bytes += size
	q.used.Records++
	return true
}

// Cancel gives a reservation back.
func (q *Queue) Cancel(size int) {
	q.used.Bytes -= size
	q.used.Records--
}

// Push appends a record whose room is reserved.
func (q *Queue) Push(rec *change.Record) {
	if q.length == len(q.ring) {
		q.grow()
	}
	q.ring[(q.head+q.length)%len(q.ring)] = rec
	q.length++
}

// grow doubles the ring, so that an idle queue costs nothing and a full one at most twice its records.
func (q *Queue) grow() {
	ring := make([]*change.Record, max(16, 2*len(q.ring)))
	for i := range q.length {
		ring[i] = q.ring[(q.head+i)%len(q.ring)]
	}
	q.ring, q.head = ring, 0
}

// Pop appends to dst the oldest records that fit the limit together, at least one if there is one, and frees their
// room.
func (q *Queue) Pop(dst []*change.Record, most Limit) []*change.Record {
	taken := Limit{}
	for q.length > 0 {
		rec := q.ring[q.head]
		size := rec.Size()
		if taken.Records > 0 && (taken.Bytes+size > most.Bytes || taken.Records >= most.Records) {
			break
		}
		q.ring[q.head] = nil
		q.head = (q.head + 1) % len(q.ring)
		q.length--
		q.Cancel(size)
		taken.Bytes += size
		taken.Records++
		dst = append(dst, rec)
	}
	return dst
}

// Len is the number of queued records.
func (q *Queue) Len() int { return q.length }

// Used is what is reserved and queued.
func (q *Queue) Used() Limit { return q.used }

// Oldest is the record that is next, nil in an empty queue.
func (q *Queue) Oldest() *change.Record {
	if q.length == 0 {
		return nil
	}
	return q.ring[q.head]
}
