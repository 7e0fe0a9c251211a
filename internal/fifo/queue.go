package fifo

import (
	"cmp"
	"slices"
	"sort"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Queue is what one listener still has to write, in order, bounded by a Limit (I6). It assigns Seq. Room is reserved
// before that, so a record with a Seq always fits.
type Queue struct {
	limit, used Limit
	newest      uint64  // the Seq that was assigned last; the first is 1
	places      []place // by order; some are empty
	head        int     // index of a place: all before it are empty
	records     int     // that are queued

	// Of a queue that coalesces, nil in others.
	objects  map[object]waiting
	barriers map[change.Stream]uint64 // the order of a place: no later record of the stream moves before it
	moved    map[uint64]uint64        // by Seq of a record that took the place of an older one: the order of that place
	pushed   []uint64                 // rising Seqs of all queued records, and of some that are not queued any more
}

// place is where a record waits.
type place struct {
	order uint64         // the Seq of the record that was put here first; it rises
	rec   *change.Record // nil if it was taken out
}

type object struct {
	stream change.Stream
	key    change.Key
}

func objectOf(rec *change.Record) object { return object{*rec.Stream, rec.Key} }

// waiting are the orders of the places of an object's records: a delete, and after it the newest state; 0 is none.
type waiting struct{ deleted, current uint64 }

// Limit bounds a queue or a batch. Both fields must be positive.
type Limit struct {
	Bytes   int // sum of change.Record.Size
	Records int
}

// NewQueue returns an empty queue.
func NewQueue(limit Limit) *Queue { return &Queue{limit: limit} }

// newCoalescing returns an empty queue for a listener that wants state and not history. Of each object it holds only
// the newest record, as client-go's DeltaFIFO compresses deltas (tools/cache, delta_fifo.go), and a delete before it if
// the object was created anew with another uid.
//
// A record that supersedes another takes its place in the queue, so that an object which changes all the time is not
// put off for ever. The record itself does not change: its id must be that of a replay (I8), and consumers that keep
// states take an update of an unknown object as its creation. So only the states in between are left out.
//
// Frames and gaps are never merged, and no record moves to before a snapshot's begin or a gap: a consumer that deletes
// what a snapshot did not contain would delete its object.
func newCoalescing(limit Limit) *Queue {
	q := NewQueue(limit)
	q.objects, q.barriers, q.moved = map[object]waiting{}, map[change.Stream]uint64{}, map[uint64]uint64{}
	return q
}

// merges says whether the record can supersede others and be superseded. A dead letter that is sent again cannot.
func (q *Queue) merges(rec *change.Record) bool {
	return q.objects != nil && rec.Op.OfObject() && rec.Replay == nil
}

// ReserveFor reserves room for the record, or returns false if there is none. Even a full coalescing queue has room for
// a record that is no larger than what it replaces: until it is pushed, the queue exceeds its limit by it.
func (q *Queue) ReserveFor(rec *change.Record) bool {
	size := rec.Size()
	if freed := q.freedBy(rec); freed > 0 && (size <= freed || q.used.Bytes+size-freed <= q.limit.Bytes) {
		q.Overdraw(size)
		return true
	}
	return q.Reserve(size)
}

// freedBy is how many bytes pushing the record would free, 0 if it supersedes nothing.
func (q *Queue) freedBy(rec *change.Record) (freed int) {
	if !q.merges(rec) {
		return 0
	}
	at := q.objects[objectOf(rec)]
	if at.current != 0 {
		freed = q.find(at.current).rec.Size()
	}
	switch same := at.deleted != 0 && q.find(at.deleted).rec.UID == rec.UID; {
	case same && rec.Op == change.Deleted:
		return freed + rec.Size() // one of the two deletes goes
	case same && at.current == 0:
		return q.find(at.deleted).rec.Size()
	}
	return freed
}

// Push queues a record whose room is reserved, and assigns its Seq. It returns the records that a coalescing queue has
// dropped, whose room is free again: they will never be popped. The record itself may be one of them.
func (q *Queue) Push(rec *change.Record) (merged []*change.Record) {
	q.newest++
	rec.Seq = q.newest
	if q.objects == nil {
		q.append(rec)
		return nil
	}
	if len(q.pushed) >= max(64, 4*q.records) {
		q.pushed = slices.DeleteFunc(q.pushed, func(seq uint64) bool { return q.queued(seq) == nil })
	}
	q.pushed = append(q.pushed, rec.Seq)
	if !q.merges(rec) {
		if rec.Op == change.SnapshotBegin || rec.Op == change.Gap {
			q.barriers[*rec.Stream] = rec.Seq
		}
		q.append(rec)
		return nil
	}
	id := objectOf(rec)
	if rec.Op == change.Deleted {
		q.objects[id], merged = q.pushDelete(rec, q.objects[id])
	} else {
		q.objects[id], merged = q.pushCurrent(rec, q.objects[id])
	}
	return merged
}

// pushCurrent queues an object's newest state. A delete stays before it, unless it has the same uid: then the object
// had left the selection and is back.
func (q *Queue) pushCurrent(rec *change.Record, at waiting) (waiting, []*change.Record) {
	switch {
	case at.current != 0:
		place, old := q.supersede(at.current, rec)
		return waiting{at.deleted, place}, []*change.Record{old}
	case at.deleted != 0 && q.find(at.deleted).rec.UID == rec.UID:
		place, old := q.supersede(at.deleted, rec)
		return waiting{current: place}, []*change.Record{old}
	}
	q.append(rec)
	return waiting{at.deleted, rec.Seq}, nil
}

// pushDelete queues a delete. A state between it and an earlier delete is dropped. The deletes of two uids are both
// kept, since an earlier process may have delivered either object. Of two deletes of one uid the one with the final
// state is kept.
func (q *Queue) pushDelete(rec *change.Record, at waiting) (waiting, []*change.Record) {
	if at.deleted == 0 && at.current == 0 {
		q.append(rec)
		return waiting{deleted: rec.Seq}, nil
	}
	if at.deleted == 0 {
		place, old := q.supersede(at.current, rec)
		return waiting{deleted: place}, []*change.Record{old}
	}
	var merged []*change.Record
	if at.current != 0 {
		merged = append(merged, q.drop(at.current))
	}
	switch first := q.find(at.deleted).rec; {
	case first.UID != rec.UID:
		q.append(rec) // the first stays queued, and merges with nothing any more
		return waiting{deleted: rec.Seq}, merged
	case first.Object == nil && rec.Object != nil:
		place, old := q.supersede(at.deleted, rec)
		return waiting{deleted: place}, append(merged, old)
	}
	q.Cancel(rec.Size())
	return waiting{deleted: at.deleted}, append(merged, rec)
}

// supersede puts the record in the place of an older one, or at the end if there is a barrier between them.
func (q *Queue) supersede(order uint64, rec *change.Record) (place uint64, old *change.Record) {
	if order < q.barriers[*rec.Stream] {
		old = q.drop(order)
		q.append(rec)
		return rec.Seq, old
	}
	at := q.find(order)
	old, at.rec = at.rec, rec
	delete(q.moved, old.Seq)
	q.moved[rec.Seq] = order
	q.Cancel(old.Size())
	return order, old
}

// drop takes the record out of the place and frees its room.
func (q *Queue) drop(order uint64) *change.Record {
	rec := q.empty(q.find(order))
	delete(q.moved, rec.Seq)
	q.Cancel(rec.Size())
	return rec
}

// Pop appends to dst the next records that fit the limit together, at least one if there is one, and frees their room.
func (q *Queue) Pop(dst []*change.Record, most Limit) []*change.Record {
	taken := Limit{}
	for p := q.first(); p != nil; p = q.first() {
		size := p.rec.Size()
		if taken.Records > 0 && (taken.Bytes+size > most.Bytes || taken.Records >= most.Records) {
			break
		}
		q.Cancel(size)
		taken.Bytes += size
		taken.Records++
		dst = append(dst, q.remove(p))
	}
	return dst
}

// Remove takes the record out and returns its order: records are popped by rising order. found is false if the record
// is not queued any more. Its room stays taken until Cancel. Later records of its object are not merged with it.
func (q *Queue) Remove(rec *change.Record) (order uint64, found bool) {
	p := q.queued(rec.Seq)
	if p == nil {
		return 0, false
	}
	q.remove(p)
	return p.order, true
}

// remove takes the record out of its place. It goes to the sink or to disk, so the sink may have it from here on, and
// nothing merges with it. Its room stays taken.
func (q *Queue) remove(p *place) *change.Record {
	rec := q.empty(p)
	delete(q.moved, rec.Seq)
	if !q.merges(rec) {
		return rec
	}
	id := objectOf(rec)
	at := q.objects[id]
	switch p.order {
	case at.deleted:
		at.deleted = 0
	case at.current:
		at.current = 0
	}
	if q.objects[id] = at; at == (waiting{}) {
		delete(q.objects, id)
	}
	return rec
}

// empty takes the record out of its place.
func (q *Queue) empty(p *place) *change.Record {
	rec := p.rec
	p.rec = nil
	q.records--
	return rec
}

// Oldest is the queued record that was pushed first, nil in an empty queue. In a coalescing queue another one may be
// next.
func (q *Queue) Oldest() *change.Record {
	if q.objects == nil {
		return q.next()
	}
	for len(q.pushed) > 0 {
		if at := q.queued(q.pushed[0]); at != nil {
			return at.rec
		}
		q.pushed = q.pushed[1:]
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

// last is the record in the last place, nil if it is not queued any more.
func (q *Queue) last() *change.Record {
	if q.first() == nil {
		return nil
	}
	return q.places[len(q.places)-1].rec
}

// append puts the record, whose room is taken, after all others. If there is no place left, the empty ones go. If most
// are in use, their number doubles, so a queue has at most twice as many places as it ever had records, or 16.
func (q *Queue) append(rec *change.Record) {
	if len(q.places) == cap(q.places) {
		packed := q.places[:0]
		if 2*q.records >= len(q.places) {
			packed = make([]place, 0, max(16, 2*q.records))
		}
		for _, p := range q.places[q.head:] {
			if p.rec != nil {
				packed = append(packed, p)
			}
		}
		clear(q.places[len(packed):])
		q.places, q.head = packed, 0
	}
	q.places = append(q.places, place{rec.Seq, rec})
	q.records++
}

// first is the first place with a record, nil if there is none. It skips the empty ones before it for good.
func (q *Queue) first() *place {
	for q.head < len(q.places) && q.places[q.head].rec == nil {
		q.head++
	}
	if q.head == len(q.places) {
		q.places, q.head = q.places[:0], 0
		return nil
	}
	return &q.places[q.head]
}

// find is the place of the order, nil if there is none any more.
func (q *Queue) find(order uint64) *place {
	places := q.places[q.head:]
	i := sort.Search(len(places), func(i int) bool { return places[i].order >= order })
	if i == len(places) || places[i].order != order {
		return nil
	}
	return &places[i]
}

// queued is the place of the record with the Seq, nil if it is not queued any more.
func (q *Queue) queued(seq uint64) *place {
	at := q.find(cmp.Or(q.moved[seq], seq))
	if at == nil || at.rec == nil || at.rec.Seq != seq {
		return nil
	}
	return at
}

// Len is the number of queued records.
func (q *Queue) Len() int { return q.records }

// Reserve reserves room for one record of the size, or returns false if there is none. A record larger than the limit
// has room if nothing else is reserved: it must pass, alone.
func (q *Queue) Reserve(size int) bool {
	if q.used.Records > 0 && (q.used.Bytes+size > q.limit.Bytes || q.used.Records >= q.limit.Records) {
		return false
	}
	q.Overdraw(size)
	return true
}

// Overdraw reserves room beyond the limit. The caller bounds by other means what is queued.
func (q *Queue) Overdraw(size int) {
	q.used.Bytes += size
	q.used.Records++
}

// Cancel gives a reservation back.
func (q *Queue) Cancel(size int) {
	q.used.Bytes -= size
	q.used.Records--
}

// Used is what is reserved, queued records included.
func (q *Queue) Used() Limit { return q.used }
