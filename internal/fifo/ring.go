package fifo

import (
	"sort"

	"github.com/kubecdc/kubecdc/internal/change"
)

// ring is where records wait in order, and the room that they take.
type ring struct {
	Room
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
