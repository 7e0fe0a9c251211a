package source

import (
	"cmp"
	"context"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// compareOne compares an object of the page with what was told last of its key. The caller has the turn.
func (r *reading) compareOne(ctx context.Context, object *frame.Object) error {
	if object.Name == "" {
		return r.listedNobody(ctx, cmp.Or(object.Err, errNoName))
	}
	if err := r.server.versions.check(object, r.upTo); err != nil {
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
		r.sinkOnly.drop(key, func(g change.SinkOnly) bool { return g.UID == l.uid })
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
	if err := r.emitSinkOnly(ctx, rec.Key, rec.UID); err != nil {
		return err
	}
	if r.held.has(rec.Key) {
		return r.release(ctx)
	}
	return nil
}

// endPredecessor tells that the object is gone that the sinks have under the record's key, where it is another one: its
// delete lies in the gap. The caller has the turn.
func (r *reading) endPredecessor(ctx context.Context, rec *change.Record) error {
	entry, found, err := r.lookUp(rec.Key)
	if err != nil {
		return err
	}
	last, exists, _ := r.recent.told(rec.Key, entry, found)
	if !exists || last.UID == rec.UID {
		return nil
	}
	return r.emitDeleted(ctx, last)
}
