package source

import (
	"context"
	"errors"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
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
	watch    int // the number of the watch that the page is read beside
	floods   int // those of what was told recently, when the list was asked for
	entries  int // that were not listed, since the watch had its turn
	mark     mark
	saved    change.Position // the newest that is known to be saved
	waiting  []frame.Object  // of the page, for the next turn
	size     int             // their bytes
	suspects []unlisted
	until    string // the watch is to pass this version before the snapshot ends
	silent   bool   // the watch has had nothing to tell for long enough
}

// step does a part of a snapshot and returns what comes next, nil at the end. It can be tried again.
type step func(context.Context) (next step, err error)

// errTooRecent says that more was changed since the mark than may be remembered (I6).
var errTooRecent = errors.New("too much was changed while the snapshot was read")

// isComparison says whether the snapshot is for all sinks.
func (r *reading) isComparison() bool { return !r.due[0].Reason.Full() }

// reached says whether the watch has told all that happened up to the version.
func (r *reading) reached(version string) bool {
	return r.cursor.reached(version) || r.silent
}

// hasPassed says whether the list is after the key.
func (r *reading) hasPassed(key change.Key) bool {
	return r.inventory.listed == nil && r.place.hasPassed(key)
}

// isFull says whether there is more to remember than may be.
func (r *reading) isFull(ctx context.Context) (bool, error) {
	give, err := r.turns.takeIn(ctx)
	if err != nil {
		return false, err
	}
	defer give()
	return r.recent.isFull(), nil
}

// forgot says whether more was told than may be remembered, so that the list is of no use.
func (r *reading) forgot() bool { return r.recent.isFull() || r.recent.floods != r.floods }

func (r *reading) forgetWaiting() {
	clear(r.waiting)
	r.waiting, r.size = r.waiting[:0], 0
}

// stand is where the watch stood.
type stand struct {
	watch    int
	position change.Position
}

// await returns when the watch may have moved. One that has been silent for long has nothing to tell any more of what
// was before the list: the server that listed could read its etcd.
func (r *reading) await(ctx context.Context, at stand) error {
	silence := time.NewTimer(r.silence.least)
	defer silence.Stop()
	select {
	case <-r.turns.moved:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-silence.C:
	}
	give, err := r.turns.takeIn(ctx)
	if err != nil {
		return err
	}
	defer give()
	r.silent = at.watch != 0 && at == stand{r.turns.open, r.cursor.position}
	return nil
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
