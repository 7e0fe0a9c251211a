package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// reconcile brings the sinks to the server's present state and emits exactly the difference. It is the one answer to
// everything that interrupts a stream. Where the history is the same, it begins here and goes on beside the watch
// (comparison.go). Another history is compared as a whole, before the next watch:
//
//	drain the line, list at one version, merge with the inventory, emit everything between begin and end
//
// It may be interrupted anywhere: what was acknowledged until then is in the inventory.
func (s *Stream) reconcile(ctx context.Context, owed change.Owed) error {
	s.recent.end()
	if s.beside = nil; owed.Reason.Beside() {
		return s.compareAll(ctx, owed)
	}
	s.schedule.dropComparison()
	for range maxRestarts {
		err := s.server.versions.ended(s.reconcileOnce(ctx, owed))
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errUnsorted):
			s.server.unsorted.Store(true) // for good: this server does not sort
		case !isGone(err):
			return err
		}
	}
	return fmt.Errorf("reconcile %s: its pages expired %d times: the list takes longer than the server keeps its history", s.stream, maxRestarts)
}

// reconcileOnce is one attempt. The list is of exactly one version, the server's present one, known before its first
// object.
func (s *Stream) reconcileOnce(ctx context.Context, owed change.Owed) error {
	if err := s.drain(ctx); err != nil {
		return err
	}
	exactly, err := s.server.present(ctx)
	if err != nil {
		return err
	}
	run := s.newRun([]change.Owed{owed}, exactly, s.line.SinkOnly(s.stream))
	defer run.inventory.close()
	run.left = s.cursor.interrupted()
	if run.left.ResourceVersion != "" {
		run.left.Epoch = change.Interrupted // it is another epoch until it is compared
	}
	if err := run.begin(ctx); err != nil {
		return err
	}
	// That the inventory is not true of the position any more is saved before any difference is told: the next life
	// might continue at the position, after differences that it does not know of (I3), and once a restored server has
	// overtaken the position nobody can tell its history from the old one (I4).
	if err := s.drain(ctx); err != nil {
		return err
	}
	if err := run.list(ctx); err != nil {
		s.server.trust.forgetAnswers()            // the server may have another version, or none of this one
		return errors.Join(err, run.release(ctx)) // what is held was compared, and would be found again
	}
	return nil
}

// list compares the whole list, page by page.
func (r *run) list(ctx context.Context) error {
	p := page{limit: pageSize, exactly: r.snapshot.ResourceVersion}
	for {
		n := 0
		meta, err := r.server.collection.list(ctx, p, func(object frame.Object) error { n++; return r.listed(ctx, &object) })
		if err != nil {
			return err
		}
		r.tellListed(n, &meta)
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
func (r *run) listed(ctx context.Context, object *frame.Object) error {
	if object.Name == "" {
		return r.listedNobody(ctx, cmp.Or(object.Err, errNoName))
	}
	if err := r.server.versions.check(object, r.snapshot.ResourceVersion); err != nil {
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
func (r *run) end(ctx context.Context) error {
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
	r.server.trust.suspect.Store(false) // everything was compared
	for _, p := range r.parts {
		r.snapshot.Counts.Synced += p.snapshot.Counts.Synced
	}
	r.Observer.Reconciled(r.stream, r.snapshot)
	return nil
}

func (r *run) emitUnlisted(ctx context.Context) error {
	if err := r.emitPassed(ctx); err != nil {
		return err
	}
	for entry, err := range r.inventory.rest() {
		if err != nil {
			return err
		}
		if err := r.gone(ctx, unlisted{entry, r.upTo}); err != nil {
			return err
		}
	}
	for key := range r.sinkOnly {
		if err := r.emitSinkOnly(ctx, key, ""); err != nil {
			return err
		}
	}
	return nil
}
