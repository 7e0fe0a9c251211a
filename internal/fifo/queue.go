package fifo

import "github.com/kubecdc/kubecdc/internal/change"

// Queue is what one listener still has to write, in order, bounded by a Limit (I6). Records are pushed in the order of
// their Seq.
type Queue struct {
	ring
	pending *pending // of a queue that coalesces, nil in others
}

// NewQueue returns an empty queue.
func NewQueue(limit Limit) *Queue { return &Queue{ring: ring{Room: newRoom(limit)}} }

// newCoalescing returns an empty queue for a listener that wants state and not history: of each object it holds the
// newest record alone, as client-go's DeltaFIFO compresses deltas (tools/cache, delta_fifo.go), and a delete before it
// where the object was made anew under another uid.
//
// A record that supersedes another takes its place in the queue, so that an object which changes all the time is not
// put off for ever. It stays as it is: its id must be the one that a replay gives it (I8), and whoever folds records
// takes an update of an object that it does not know as its creation. So what an object becomes is the same, and what
// it was in between is left out.
//
// Frames and gaps are never merged, and no record moves to before the begin of a snapshot or a gap: a consumer that
// forgets what it was not told of within a snapshot would forget it.
func newCoalescing(limit Limit) *Queue {
	q := NewQueue(limit)
	q.pending = newPending()
	return q
}

// ReserveFor takes room for the record. A queue that coalesces has room for whatever takes no more than what it
// replaces, also when it is full: its use exceeds the limit by that record until it is pushed.
func (q *Queue) ReserveFor(rec *change.Record) bool {
	size := rec.Size()
	if freed := q.pending.freedBy(&q.ring, rec); freed > 0 && (size <= freed || q.used.Bytes+size-freed <= q.limit.Bytes) {
		q.Overdraw(size)
		return true
	}
	return q.Reserve(size)
}

// Push appends a record whose room is reserved. It returns the records that a queue which coalesces does not hold any
// more, and whose room is free: they will never be popped. The record itself may be one of them. Of a record that the
// sink may have been given before, by an earlier process, all deletes are kept: any of the objects may be known to the
// sink.
func (q *Queue) Push(rec *change.Record, again bool) (merged []*change.Record) {
	if q.pending != nil {
		return q.pending.push(&q.ring, rec, again)
	}
	q.append(rec)
	return nil
}

// Pop appends to dst the oldest records that fit the limit together, at least one if there is one, and frees their
// room.
func (q *Queue) Pop(dst []*change.Record, most Limit) []*change.Record {
	taken := Limit{}
	for p := q.first(); p != nil; p = q.first() {
		size := p.rec.Size()
		if taken.Records > 0 && (taken.Bytes+size > most.Bytes || taken.Records >= most.Records) {
			break
		}
		q.pending.popped(p.rec, p.order)
		q.Cancel(size)
		taken.Bytes += size
		taken.Records++
		dst = append(dst, q.remove(p))
	}
	return dst
}

// Remove takes the record out and says where in the queue it was: records are popped in the order that rises. It is
// false where the record is not queued any more. Its room stays taken until Cancel. What comes later of its object is
// not merged with it.
func (q *Queue) Remove(rec *change.Record) (order uint64, found bool) {
	p := q.pending.queued(&q.ring, rec.Seq)
	if p == nil {
		return 0, false
	}
	order = p.order
	q.pending.popped(rec, order)
	q.remove(p)
	return order, true
}

// Oldest is the record that was pushed first, nil in an empty queue. Where the queue coalesces another one may be next.
func (q *Queue) Oldest() *change.Record {
	if q.pending != nil {
		return q.pending.oldest(&q.ring)
	}
	if p := q.first(); p != nil {
		return p.rec
	}
	return nil
}

// next is the record that is popped next, nil in an empty queue.
func (q *Queue) next() *change.Record {
	if p := q.first(); p != nil {
		return p.rec
	}
	return nil
}

// last is the record that was appended last, nil where it is not queued any more.
func (q *Queue) last() *change.Record {
	if q.length == 0 {
		return nil
	}
	return q.at(q.length - 1).rec
}
