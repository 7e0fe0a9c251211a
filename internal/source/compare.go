package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// errTooRecent says that more was changed since the mark than may be remembered (I6).
var errTooRecent = errors.New("too much was changed while the snapshot was read")

// compareOne compares an object of the page with what was told last of its key. The caller has the turn.
func (r *reading) compareOne(ctx context.Context, object *frame.Object) error {
	if object.Name == "" {
		return r.listedNobody(ctx, cmp.Or(object.Err, errNoName))
	}
	if err := r.versions.check(object, r.upTo); err != nil {
		return err
	}
	key := change.Key{Namespace: object.Namespace, Name: object.Name}
	joined := key.String()
	if again, err := r.place.repeated.has(joined, r.inventory.listed); again || err != nil {
		return err
	}
	entry, found, err := r.inventory.find(key, func(passed change.Entry) error { return r.pass(ctx, passed) })
	if err != nil {
		return err
	}
	r.place.done = joined
	l := listing{uid: object.UID, version: object.ResourceVersion, list: r.place.list, position: r.cursor.position.ResourceVersion}
	l.last, l.exists, l.deleted = r.recent.told(key, entry, found)
	return r.act(ctx, object, &l)
}

// act does what the verdict asks for.
func (r *reading) act(ctx context.Context, object *frame.Object, l *listing) error {
	key := change.Key{Namespace: object.Namespace, Name: object.Name}
	verdict := l.judge()
	switch verdict {
	case ahead:
		r.until = newerVersion(r.until, l.version)
		fallthrough
	case outdated:
		r.forgetSinkOnly(key, l.uid)
		return nil
	case another, drift:
		if err := r.drainForDrift(ctx); err != nil {
			return err
		}
	}
	if verdict == another {
		if err := r.emitDeleted(ctx, l.last); err != nil {
			return err
		}
		l.last = change.Entry{}
	}
	if err := r.emitSinkOnly(ctx, key, l.uid); err != nil {
		return err
	}
	switch {
	case verdict == unchanged && r.isComparison():
		return r.keepMissing(ctx, object)
	case verdict == unchanged:
		return r.emitSync(ctx, object)
	}
	return r.emitReplaced(ctx, object, l.last)
}

func newerVersion(a, b string) string {
	if change.CompareVersions(a, b) > 0 {
		return a
	}
	return b
}

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
	case !exists:
		return true, nil
	case s.list == "" || !r.reached(s.list):
		return false, nil
	}
	entry, found, err := r.lookUp(s.entry.Key)
	if err != nil {
		return false, err
	}
	last, exists, _ = r.recent.told(s.entry.Key, entry, found)
	if !exists || change.CompareVersions(last.ResourceVersion, s.list) > 0 {
		return true, nil
	}
	if err := r.drainForDrift(ctx); err != nil {
		return false, err
	}
	return true, r.emitDeleted(ctx, last)
}

// lookUp returns what the inventory has of the key.
func (s *Stream) lookUp(key change.Key) (entry change.Entry, found bool, err error) {
	if entry, found, err = s.Inventory.Lookup(s.stream.String(), key); err != nil {
		err = fmt.Errorf("look up %s in the inventory of %s: %w", key, s.stream, err)
	}
	return entry, found, err
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

// reached says whether the watch has told all that happened up to the version.
func (r *reading) reached(version string) bool {
	return r.cursor.reached(version) || r.silent
}

// hasPassed says whether the list is behind the key.
func (r *reading) hasPassed(key change.Key) bool {
	return r.inventory.listed == nil && r.place.hasPassed(key)
}

// meets prepares for a record of the watch: what is held of its key goes first, and what the sinks, or one alone, have
// under it is told to be gone, unless the record tells that itself. The caller has the turn.
func (r *reading) meets(ctx context.Context, rec *change.Record) error {
	if r.held.has(rec.Key) {
		if err := r.release(ctx); err != nil {
			return err
		}
	}
	if r.isComparison() && rec.Op.OfObject() {
		if err := r.endPredecessor(ctx, rec); err != nil {
			return err
		}
	}
	sinkOnly := r.sinkOnly[rec.Key]
	delete(r.sinkOnly, rec.Key)
	for _, object := range sinkOnly {
		if object.UID == rec.UID {
			continue
		}
		if err := r.emitGone(ctx, object.Entry, object.Sink); err != nil {
			return err
		}
	}
	if r.held.has(rec.Key) {
		return r.release(ctx)
	}
	return nil
}
