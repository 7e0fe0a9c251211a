package source

import (
	"context"

	"github.com/kubecdc/kubecdc/internal/change"
)

// maxHeld bounds the records that a run holds back. A longer run of records that no sink takes leaves the one before it
// unmarked (I6).
const maxHeld = 1024

// A run holds its records back until a later one takes their place, so that the last one that each sink gets can be
// marked before it goes in line. They go in their order (I3), and what is held is not delivered yet for anybody: a run
// that fails lets it go, unmarked, and one that is cut off is repeated.

// hold shapes the record and puts those in line that it follows.
func (r *run) hold(ctx context.Context, rec *change.Record) error {
	if err := r.shape(rec); err != nil {
		return err
	}
	return r.holdShaped(ctx, rec)
}

func (r *run) holdShaped(ctx context.Context, rec *change.Record) error {
	r.held = append(r.held, rec)
	if rec.Filtered && len(r.held) <= maxHeld {
		return nil // it is nobody's last, and takes nobody's place
	}
	n := 0
	for n < len(r.held)-1 && (len(r.held)-n > maxHeld || !r.mayBeLast(n)) {
		n++
	}
	return r.let(ctx, n)
}

// mayBeLast says whether the held record is the last one so far for any of the sinks that the run is for.
func (r *run) mayBeLast(i int) bool {
	rec := r.held[i]
	if rec.Filtered {
		return false
	}
	for _, p := range r.parts {
		if isFor(rec, p) && !r.isFollowed(i, p) {
			return true
		}
	}
	return false
}

// isFollowed says whether the part's sink gets a record that is held behind the one at i.
func (r *run) isFollowed(i int, p *part) bool {
	for _, later := range r.held[i+1:] {
		if !later.Filtered && isFor(later, p) {
			return true
		}
	}
	return false
}

// isFor says whether the part's sink gets the record. A part without a sink is all of them; a record for one of them is
// not its last.
func isFor(rec *change.Record, p *part) bool { return rec.Sink == "" || rec.Sink == p.owed.Sink }

// releaseLast marks what is held and may be last, and puts all of it in line.
func (r *run) releaseLast(ctx context.Context) error {
	for i, rec := range r.held {
		rec.Last = r.mayBeLast(i)
	}
	return r.release(ctx)
}

// release puts what is held in line.
func (r *run) release(ctx context.Context) error { return r.let(ctx, len(r.held)) }

// let puts the first n that are held in line.
func (r *run) let(ctx context.Context, n int) error {
	for i, rec := range r.held[:n] {
		if err := r.enter(ctx, rec); err != nil {
			r.held = r.held[i:]
			return err
		}
	}
	left := copy(r.held, r.held[n:])
	clear(r.held[left:])
	r.held = r.held[:left]
	return nil
}
