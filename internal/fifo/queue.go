package fifo

import (
	"cmp"
	"slices"
	"sort"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Queue is what one listener still has to write, in order, bounded by a Limit (I6). It gives records their Seq.
type Queue struct {
	ring
	newest  uint64   // the Seq that was given last; the first is 1
	pending *pending // of a queue that coalesces, nil in others
}

// NewQueue returns an empty queue.
func NewQueue(limit Limit) *Queue { return &Queue{ring: ring{limit: limit}} }

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
	q.pending = &pending{
		objects: map[object]waiting{}, barriers: map[change.Stream]uint64{}, moved: map[uint64]uint64{},
	}
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
// more, and whose room is free: they will never be popped. The record itself may be one of them.
func (q *Queue) Push(rec *change.Record) (merged []*change.Record) {
	q.newest++
	rec.Seq = q.newest
	if q.pending != nil {
		return q.pending.push(&q.ring, rec)
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
	return q.next()
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

// pending finds the records of an object that are queued. A nil one has none.
type pending struct {
	objects  map[object]waiting
	barriers map[change.Stream]uint64 // the place that nothing of the stream which comes later moves before
	// by Seq of a record that is in the place of an older one: the order of that place
	moved  map[uint64]uint64
	pushed []uint64 // Seqs, rising; those that are queued, and some that are not any more
}

type object struct {
	stream change.Stream
	key    change.Key
}

func objectOf(rec *change.Record) object { return object{*rec.Stream, rec.Key} }

// merges says whether the record supersedes, and is superseded. A dead letter that is sent again goes out as it is.
func merges(rec *change.Record) bool { return rec.Op.OfObject() && rec.Replay == nil }

// waiting are the places of an object's records: a delete, and after it what the object is now; 0 is none.
type waiting struct{ deleted, current uint64 }

// push queues the record in the place of what it supersedes.
func (p *pending) push(r *ring, rec *change.Record) (merged []*change.Record) {
	p.noteSeq(r, rec.Seq)
	if !merges(rec) {
		if rec.Op == change.SnapshotBegin || rec.Op == change.Gap {
			p.barriers[*rec.Stream] = rec.Seq
		}
		r.append(rec)
		return nil
	}
	id := objectOf(rec)
	at := p.objects[id]
	if rec.Op == change.Deleted {
		at, merged = p.pushDelete(r, rec, at)
	} else {
		at, merged = p.pushCurrent(r, rec, at)
	}
	p.objects[id] = at
	return merged
}

// pushCurrent queues what an object is now. A delete stays before it, unless it is of the same object, which left the
// selection and is back.
func (p *pending) pushCurrent(r *ring, rec *change.Record, at waiting) (waiting, []*change.Record) {
	switch {
	case at.current != 0:
		place, old := p.supersede(r, at.current, rec)
		return waiting{at.deleted, place}, []*change.Record{old}
	case at.deleted != 0 && r.find(at.deleted).rec.UID == rec.UID:
		place, old := p.supersede(r, at.deleted, rec)
		return waiting{current: place}, []*change.Record{old}
	}
	r.append(rec)
	return waiting{at.deleted, rec.Seq}, nil
}

// pushDelete queues a delete. What lies between it and another one is left out. Each object's is kept: an earlier
// process may have given the sink any of them. Of two of the same object the one that knows the final state is kept.
func (p *pending) pushDelete(r *ring, rec *change.Record, at waiting) (waiting, []*change.Record) {
	if at.deleted == 0 && at.current == 0 {
		r.append(rec)
		return waiting{deleted: rec.Seq}, nil
	}
	if at.deleted == 0 {
		place, old := p.supersede(r, at.current, rec)
		return waiting{deleted: place}, []*change.Record{old}
	}
	var merged []*change.Record
	if at.current != 0 {
		merged = append(merged, p.drop(r, at.current))
	}
	switch first := r.find(at.deleted).rec; {
	case first.UID != rec.UID:
		r.append(rec) // and the first is no longer looked at
		return waiting{deleted: rec.Seq}, merged
	case first.Object == nil && rec.Object != nil:
		place, old := p.supersede(r, at.deleted, rec)
		return waiting{deleted: place}, append(merged, old)
	}
	r.Cancel(rec.Size())
	return waiting{deleted: at.deleted}, append(merged, rec)
}

// supersede puts the record in the place of an older one, or at the end where a barrier is between them.
func (p *pending) supersede(r *ring, order uint64, rec *change.Record) (place uint64, old *change.Record) {
	if order < p.barriers[*rec.Stream] {
		old = p.drop(r, order)
		r.append(rec)
		return rec.Seq, old
	}
	at := r.find(order)
	old, at.rec = at.rec, rec
	delete(p.moved, old.Seq)
	p.moved[rec.Seq] = order
	r.Cancel(old.Size())
	return order, old
}

// drop takes out the record of the place and frees its room.
func (p *pending) drop(r *ring, order uint64) *change.Record {
	rec := r.drop(order)
	delete(p.moved, rec.Seq)
	return rec
}

// noteSeq notes that a record is pushed.
func (p *pending) noteSeq(r *ring, seq uint64) {
	if len(p.pushed) >= max(64, 4*r.records) {
		p.pushed = slices.DeleteFunc(p.pushed, func(seq uint64) bool { return p.queued(r, seq) == nil })
	}
	p.pushed = append(p.pushed, seq)
}

// oldest is the record with the lowest Seq, nil in an empty queue.
func (p *pending) oldest(r *ring) *change.Record {
	for len(p.pushed) > 0 {
		if at := p.queued(r, p.pushed[0]); at != nil {
			return at.rec
		}
		p.pushed = p.pushed[1:]
	}
	return nil
}

// queued is the place of the record with the Seq, nil where it is not queued any more.
func (p *pending) queued(r *ring, seq uint64) *place {
	order := seq
	if p != nil {
		order = cmp.Or(p.moved[seq], seq)
	}
	at := r.find(order)
	if at == nil || at.rec == nil || at.rec.Seq != seq {
		return nil
	}
	return at
}

// popped forgets the place of a record that is queued no longer: the sink is given it, or it is on disk, and either way
// the sink may have its object from here on.
func (p *pending) popped(rec *change.Record, order uint64) {
	if p == nil {
		return
	}
	delete(p.moved, rec.Seq)
	if !merges(rec) {
		return
	}
	id := objectOf(rec)
	at := p.objects[id]
	switch order {
	case at.deleted:
		at.deleted = 0
	case at.current:
		at.current = 0
	}
	if at == (waiting{}) {
		delete(p.objects, id)
	} else {
		p.objects[id] = at
	}
}

// freedBy is the room in bytes that pushing the record would free, 0 where nothing is superseded.
func (p *pending) freedBy(r *ring, rec *change.Record) int {
	if p == nil || !merges(rec) {
		return 0
	}
	at, freed := p.objects[objectOf(rec)], 0
	if at.current != 0 {
		freed = r.find(at.current).rec.Size()
	}
	if at.deleted != 0 && rec.Op == change.Deleted && r.find(at.deleted).rec.UID == rec.UID {
		return freed + rec.Size() // one of the two deletes goes
	}
	if at.deleted != 0 && at.current == 0 && r.find(at.deleted).rec.UID == rec.UID {
		freed = r.find(at.deleted).rec.Size()
	}
	return freed
}

// ring is where records wait in order, and what may be held at once, and how much of that is taken (I6). Room is
// reserved before a record gets its Seq, so that a record that is numbered always fits.
type ring struct {
	limit, used Limit

	places  []place
	head    int
	length  int // of the places that are in use, with a record or without
	records int // that are queued
}

// place is where a record waits.
type place struct {
	order uint64         // the Seq of the record that was put here first; it rises along the ring
	rec   *change.Record // nil where it was taken out
}

// append puts the record, whose room is taken, after all others.
func (r *ring) append(rec *change.Record) {
	if r.length == len(r.places) {
		r.grow()
	}
	*r.at(r.length) = place{rec.Seq, rec}
	r.length++
	r.records++
}

// at is the i-th place, counted from the oldest.
func (r *ring) at(i int) *place { return &r.places[(r.head+i)%len(r.places)] }

// grow makes a ring of the places that have a record, with as much room again, so that an idle queue costs nothing and
// a full one at most twice its records.
func (r *ring) grow() {
	places, length := make([]place, max(16, 2*r.records)), 0
	for i := range r.length {
		if p := r.at(i); p.rec != nil {
			places[length] = *p
			length++
		}
	}
	r.places, r.head, r.length = places, 0, length
}

// first is the oldest place with a record, nil where there is none. The empty ones before it are free.
func (r *ring) first() *place {
	for r.length > 0 && r.at(0).rec == nil {
		r.head = (r.head + 1) % len(r.places)
		r.length--
	}
	if r.length == 0 {
		return nil
	}
	return r.at(0)
}

// find is the place of the order, nil where it is not in use any more.
func (r *ring) find(order uint64) *place {
	i := sort.Search(r.length, func(i int) bool { return r.at(i).order >= order })
	if i == r.length || r.at(i).order != order {
		return nil
	}
	return r.at(i)
}

// remove takes the record out of its place. Its room stays taken.
func (r *ring) remove(p *place) *change.Record {
	rec := p.rec
	p.rec = nil
	r.records--
	return rec
}

// drop takes the record of the order out and frees its room.
func (r *ring) drop(order uint64) *change.Record {
	rec := r.remove(r.find(order))
	r.Cancel(rec.Size())
	return rec
}

// Len is the number of queued records.
func (r *ring) Len() int { return r.records }

// Limit bounds a queue or a batch. Both fields must be positive.
type Limit struct {
	Bytes   int // sum of change.Record.Size
	Records int
}

// Reserve takes room for one record of the size, or returns false when there is none. A record above the whole limit
// has room when nothing is taken: it must pass, and nothing else passes beside it.
func (r *ring) Reserve(size int) bool {
	if r.used.Records > 0 && (r.used.Bytes+size > r.limit.Bytes || r.used.Records >= r.limit.Records) {
		return false
	}
	r.Overdraw(size)
	return true
}

// Overdraw takes room that there is not. The caller bounds by other means what is held.
func (r *ring) Overdraw(size int) {
	r.used.Bytes += size
	r.used.Records++
}

// Cancel gives a reservation back.
func (r *ring) Cancel(size int) {
	r.used.Bytes -= size
	r.used.Records--
}

// Used is what is taken.
func (r *ring) Used() Limit { return r.used }
