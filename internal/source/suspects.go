package source

import (
	"cmp"
	"context"
	"errors"

	"github.com/kubecdc/kubecdc/internal/change"
)

// suspect takes an entry that was not listed. Once the watch has passed the version of the list and has not told that
// the object is gone, nobody will. Where too many wait for that (I6), it returns when the watch has passed them.
func (r *reading) suspect(ctx context.Context, u unlisted) error {
	if err := r.stepAside(ctx); err != nil {
		return err
	}
	settled, err := r.settle(ctx, &u)
	if settled || err != nil {
		return err
	}
	for len(r.suspects) >= maxPassed {
		if err := r.awaitSuspects(ctx); err != nil {
			return err
		}
	}
	r.suspects = append(r.suspects, u)
	return nil
}

// settle tells that the object is gone, where that is certain, and says whether nothing is open about it any more.
func (r *reading) settle(ctx context.Context, s *unlisted) (settled bool, err error) {
	last, exists, _ := r.recent.told(s.entry.Key, s.entry, true)
	switch {
	case !exists, s.isFollowedBy(last):
		return true, nil
	case s.list == "" || !r.watch.reached(s.list):
		return false, nil
	}
	entry, found, err := r.lookUp(s.entry.Key)
	if err != nil {
		return false, err
	}
	last, exists, _ = r.recent.told(s.entry.Key, entry, found)
	if !exists || change.CompareVersions(last.ResourceVersion, cmp.Or(s.oldest, s.list)) > 0 || s.isFollowedBy(last) {
		return true, nil
	}
	if err := r.drainForDrift(ctx); err != nil {
		return false, err
	}
	return true, r.emitDeleted(ctx, last)
}

// drainForDrift has the position saved before a difference is told that no watch brings again: a sink's log is compared
// with it after a crash, and what is older than it is looked for by another snapshot. A comparison goes on after a
// crash, and finds it again.
func (r *reading) drainForDrift(ctx context.Context) error {
	if r.isComparison() || r.saved == r.cursor.position {
		return nil
	}
	if err := r.drain(ctx); err != nil {
		return err
	}
	r.saved = r.cursor.position
	return nil
}

// settleAll settles what can be.
func (r *reading) settleAll(ctx context.Context) error {
	open := r.suspects[:0]
	for i := range r.suspects {
		settled, err := r.settle(ctx, &r.suspects[i])
		if settled && err == nil {
			err = r.stepAside(ctx)
		}
		if err != nil && !errors.Is(err, errTooRecent) && !errors.Is(err, errWatchEnded) { // which is of no concern here
			return err
		}
		if !settled {
			open = append(open, r.suspects[i])
		}
	}
	r.suspects = open
	return nil
}

// awaitSuspects settles what can be when the watch has moved.
func (r *reading) awaitSuspects(ctx context.Context) error {
	at := r.watch.stand()
	r.entries = 0
	if err := r.watch.aside(ctx, func(ctx context.Context) error { return r.watch.await(ctx, at) }); err != nil {
		return err
	}
	err := r.settleAll(ctx)
	r.watch.silent = false // which is true of this list only
	return err
}
