package source

import (
	"cmp"
	"context"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// relist is a reconcile that ends before the next watch: what the sinks have is compared with one whole list.
type relist struct {
	*Stream
	*difference
	newest proof // of what was listed
}

// newRelist returns one that has told nothing yet. Until its end nothing is true of the position.
func (s *Stream) newRelist(owed change.Owed, version string, sinkOnly []change.SinkOnly) *relist {
	r := &relist{Stream: s, difference: s.newDifference([]change.Owed{owed}, version, sinkOnly)}
	r.left = s.cursor.interrupted()
	return r
}

// list compares the whole list, page by page.
func (r *relist) list(ctx context.Context) error {
	p := page{limit: pageSize, exactly: r.snapshot.ResourceVersion}
	for {
		n := 0
		meta, err := r.origin.collection.list(ctx, p, func(object frame.Object) error { n++; return r.listed(ctx, &object) })
		if err != nil {
			return err
		}
		r.Observer.tellListed(r.stream, n, &meta)
		if p.token, p.limit = meta.Continue, pageSize; p.token == "" {
			return r.end(ctx)
		}
		if err := r.proveOrder(ctx, p.token); err != nil {
			return err
		}
	}
}

// listed compares one object of the list with the inventory. What differs goes to all sinks; what does not, to those
// that are owed a full snapshot. In another history the same version may be another state of the object, so there
// everything goes to all sinks (I4).
func (r *relist) listed(ctx context.Context, object *frame.Object) error {
	if object.Name == "" {
		return r.listedNobody(ctx, cmp.Or(object.Err, errNoName))
	}
	if err := r.origin.versions.check(object, r.snapshot.ResourceVersion); err != nil {
		return err
	}
	key := change.Key{Namespace: object.Namespace, Name: object.Name}
	if change.CompareVersions(object.ResourceVersion, r.newest.version) > 0 {
		r.newest = proof{key: key, uid: object.UID, version: object.ResourceVersion}
	}
	entry, found, err := r.inventory.find(key, func(passed change.Entry) error { return r.pass(ctx, passed) })
	if err != nil {
		return err
	}
	if found && entry.UID != object.UID {
		if err := r.emitDeleted(ctx, entry); err != nil {
			return err
		}
		found, entry = false, change.Entry{}
	}
	if err := r.emitSinkOnly(ctx, key, object.UID); err != nil {
		return err
	}
	if found && entry.ResourceVersion == object.ResourceVersion && r.snapshot.Reason != change.Epoch {
		return r.keepMissing(ctx, object)
	}
	return r.emitReplaced(ctx, object, entry)
}

// end emits what the sinks have and was not listed, and moves the position. Also where the list was at exactly the
// position, the position is complete then: whatever shares its version and the watch had not brought yet is corrected.
func (r *relist) end(ctx context.Context) error {
	if err := r.emitUnlisted(ctx); err != nil {
		return err
	}
	if err := r.releaseLast(ctx); err != nil {
		return err
	}
	position := r.cursor.restart(change.Position{
		ResourceVersion: r.snapshot.ResourceVersion, Complete: true, Epoch: r.epoch, Selector: r.Selection.String(),
	})
	if err := r.emitFrames(ctx, change.SnapshotEnd, position); err != nil {
		return err
	}
	r.proof = r.newest.detached()
	r.origin.trust.suspect.Store(false) // everything was compared
	r.tellEnd()
	return nil
}

func (r *relist) emitUnlisted(ctx context.Context) error {
	if err := r.emitPassed(ctx); err != nil {
		return err
	}
	for entry, err := range r.inventory.rest() {
		if err != nil {
			return err
		}
		if err := r.gone(ctx, unlisted{entry: entry, list: r.upTo}); err != nil {
			return err
		}
	}
	return r.emitAllSinkOnly(ctx)
}
