package fifo

import (
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

// pending finds the records of an object that are queued. A nil one has none.
type pending struct {
	objects  map[object]waiting
	barriers map[change.Stream]uint64 // the place that nothing of the stream which comes later moves before
	// by Seq of a record that is in the place of an older one: the order of that place
	moved  map[uint64]uint64
	pushed []uint64 // Seqs, rising; those that are queued, and some that are not any more
}

func newPending() *pending {
	return &pending{
		objects: map[object]waiting{}, barriers: map[change.Stream]uint64{}, moved: map[uint64]uint64{},
	}
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
func (p *pending) push(r *ring, rec *change.Record, again bool) (merged []*change.Record) {
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
		at, merged = p.pushDelete(r, rec, at, again)
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

// pushDelete queues a delete. After another one it is left out, with what lies between: nobody was given the object
// that it is about, but for a record that is for this sink alone: such an object only this sink was given. Of two of
// the same object the one that knows the final state is kept.
func (p *pending) pushDelete(r *ring, rec *change.Record, at waiting, again bool) (waiting, []*change.Record) {
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
	if first := r.find(at.deleted).rec; first.UID == rec.UID && first.Object == nil && rec.Object != nil {
		place, old := p.supersede(r, at.deleted, rec)
		return waiting{deleted: place}, append(merged, old)
	}
	if (again || rec.Sink != "") && r.find(at.deleted).rec.UID != rec.UID {
		r.append(rec) // and the first is no longer looked at
		return waiting{deleted: rec.Seq}, merged
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

// orderOf is the order of the place where the record with the Seq is, if it is queued.
func (p *pending) orderOf(seq uint64) uint64 {
	if p != nil {
		if order, found := p.moved[seq]; found {
			return order
		}
	}
	return seq
}

// queued is the place of the record with the Seq, nil where it is not queued any more.
func (p *pending) queued(r *ring, seq uint64) *place {
	at := r.find(p.orderOf(seq))
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
