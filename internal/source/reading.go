package source

import (
	"context"

	"github.com/kubecdc/kubecdc/internal/change"
)

// reading is a snapshot beside the watch. Each page of its list is read after a mark: what was told before the
// mark is in the inventory, and what was told since is remembered (recent). So it is known of each object what was told
// last, and nothing need be drained or stopped.
type reading struct {
	*Stream
	*difference
	due       []change.Owed
	announced bool // its begin was told, and nothing was read of it

	place    place
	watch    neighbour
	entries  int // that were not listed, since the watch had its turn
	mark     savePoint
	saved    change.Position // the newest that is known to be saved
	batch    batch           // of the page
	suspects []unlisted
	until    string // the watch is to pass this version before the snapshot ends
}

// newReading returns a snapshot of which nothing is told.
func (s *Stream) newReading(due []change.Owed) *reading {
	return &reading{Stream: s, due: due, watch: neighbour{out: &s.output, least: s.silence.least}}
}

// step does a part of a snapshot and returns what comes next, nil at the end. It can be tried again.
type step func(context.Context) (next step, err error)

// isComparison says whether the snapshot is for all sinks.
func (r *reading) isComparison() bool { return !r.due[0].Reason.Full() }

// hasPassed says whether the list is after the key.
func (r *reading) hasPassed(key change.Key) bool {
	return r.inventory.listed == nil && r.place.hasPassed(key)
}

// close ends the snapshot, complete or not. What is held was compared, and would be found again. What a comparison does
// for the watch it does until another one takes its place: it is due.
func (r *reading) close(ctx context.Context) {
	r.mark.drop()
	if r.difference == nil {
		return
	}
	r.inventory.close()
	r.turns.take()
	defer r.turns.give()
	if r.beside == r {
		_ = r.release(ctx) // it fails where ctx has ended, and what is left is found again
		if r.isComparison() {
			return
		}
		r.alone()
		if r.Observer.Abandoned != nil {
			r.Observer.Abandoned(r.stream, r.snapshot)
		}
	}
}
