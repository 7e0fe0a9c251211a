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
	if err := r.origin.versions.check(object, r.upTo); err != nil {
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
		if l.exists && l.last.UID != l.uid { // the watch need not tell of its delete, which may lie in a gap
			if err := r.suspect(ctx, unlisted{entry: l.last, replaced: true}); err != nil {
				return err
			}
		}
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
