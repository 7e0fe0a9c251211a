package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// pageSize is how many objects one page of a list holds at most; client-go's pager asks for as many.
const pageSize = 500

// maxRestarts is how often one reconcile starts over when its pages expire, before the Reflector's backoff has its turn.
const maxRestarts = 5

// reconcile brings the sinks to the server's present state and emits exactly the difference. It is the one answer to
// everything that interrupts a stream: the initial snapshot is a reconcile against an empty inventory.
//
//	drain the line, list at one version, merge with the inventory, emit the difference between begin and end
//
// It may be interrupted anywhere: what was acknowledged until then is in the inventory and is not emitted again.
func (s *Stream) reconcile(ctx context.Context, r request) error {
	for range maxRestarts {
		exactly := ""
		if r.full() {
			exactly = s.cursor.position.ResourceVersion
		}
		err := s.reconcileOnce(ctx, r, exactly)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errUnsorted):
			s.unsorted = true // for good: this server does not sort
		case !isGone(err):
			return err
		case exactly != "" && s.cursor.position.ResourceVersion == exactly:
			// The server no longer has the position: everybody has missed something.
			if err := s.reconcile(ctx, request{reason: change.Gone}); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("reconcile %s: its pages expired %d times: the list takes longer than the server keeps its history", s.stream, maxRestarts)
}

// reconcileOnce is one attempt. The list is of exactly one version, known before its first object: the given one, so
// that no change after it is skipped, or with "" the server's present one.
func (s *Stream) reconcileOnce(ctx context.Context, r request, exactly string) error {
	if err := s.line.Drain(ctx, s.stream); err != nil {
		return fmt.Errorf("drain %s: %w", s.stream, err)
	}
	var ghosts []change.Ghost
	if exactly == "" {
		now, err := s.serverVersion(ctx)
		if err != nil {
			return err
		}
		exactly, ghosts = now, s.line.Ghosts(s.stream) // no watch will bring them again
	}
	run := s.newRun(r, exactly, ghosts)
	defer run.inventory.close()
	if err := run.begin(ctx); err != nil {
		return err
	}
	p := page{limit: pageSize, exactly: exactly}
	for {
		meta, err := s.Client.list(ctx, s, p, func(object frame.Object) error { return run.listed(ctx, &object) })
		if err != nil {
			return err
		}
		if p.token = meta.Continue; p.token == "" {
			return run.end(ctx)
		}
	}
}

// serverVersion asks where the server stands, by a list of one object.
func (s *Stream) serverVersion(ctx context.Context) (string, error) {
	meta, err := s.Client.list(ctx, s, page{limit: 1}, func(frame.Object) error { return nil })
	if err != nil {
		return "", fmt.Errorf("ask the server for the version of %s: %w", s.stream, err)
	}
	return meta.ResourceVersion, nil
}

// run is one attempt of a reconcile.
type run struct {
	*Stream
	request   request
	snapshot  *change.Snapshot
	inventory *merge
	ghosts    map[change.Key][]change.Ghost
}

func (s *Stream) newRun(r request, version string, ghosts []change.Ghost) *run {
	byKey := map[change.Key][]change.Ghost{}
	for _, ghost := range ghosts {
		byKey[ghost.Key] = append(byKey[ghost.Key], ghost)
	}
	return &run{
		Stream: s, request: r,
		snapshot: &change.Snapshot{
			ID:     version + "." + strconv.FormatInt(time.Now().UnixMilli(), 10),
			Reason: r.reason, From: s.cursor.position.ResourceVersion, ResourceVersion: version,
		},
		inventory: newMerge(s.Inventory, s.stream.String(), s.unsorted),
		ghosts:    byKey,
	}
}

// begin announces the gap, where there is one, and the reconcile that mends it (I4).
func (r *run) begin(ctx context.Context) error {
	r.Observer.Reconciling(r.stream, r.snapshot)
	if r.request.reason.Gap() {
		if err := r.emitFrame(ctx, change.Gap, change.Position{}); err != nil {
			return err
		}
	}
	return r.emitFrame(ctx, change.SnapshotBegin, change.Position{})
}

// end emits what the sinks have and was not listed, and moves the position.
func (r *run) end(ctx context.Context) error {
	if r.request.sink == "" {
		if err := r.emitUnlisted(ctx); err != nil {
			return err
		}
	}
	position := r.cursor.restart(change.Position{
		ResourceVersion: r.snapshot.ResourceVersion, Complete: true, Epoch: r.ClusterUID, Selector: r.selection.String(),
	})
	if err := r.emitFrame(ctx, change.SnapshotEnd, position); err != nil {
		return err
	}
	r.Observer.Reconciled(r.stream, r.snapshot)
	return nil
}

func (r *run) emitUnlisted(ctx context.Context) error {
	for entry, err := range r.inventory.rest() {
		if err != nil {
			return err
		}
		if err := r.emitDeleted(ctx, entry); err != nil {
			return err
		}
	}
	for key := range r.ghosts {
		if err := r.emitGhosts(ctx, key, ""); err != nil {
			return err
		}
	}
	return nil
}

// listed compares one object of the list with the inventory. A full snapshot for one sink compares nothing: what the
// others have is not its business.
func (r *run) listed(ctx context.Context, object *frame.Object) error {
	if r.request.sink != "" {
		r.snapshot.Counts.Synced++
		return r.emitObject(ctx, change.Sync, object)
	}
	key := change.Key{Namespace: object.Namespace, Name: object.Name}
	entry, found, err := r.inventory.find(key, func(gone change.Entry) error { return r.emitDeleted(ctx, gone) })
	if err != nil {
		return err
	}
	if found && entry.UID != object.UID {
		if err := r.emitDeleted(ctx, entry); err != nil {
			return err
		}
		found = false
	}
	if err := r.emitGhosts(ctx, key, object.UID); err != nil {
		return err
	}
	if found && entry.ResourceVersion == object.ResourceVersion {
		if !r.request.full() {
			return nil
		}
		r.snapshot.Counts.Synced++
		return r.emitObject(ctx, change.Sync, object)
	}
	r.snapshot.Counts.Replaced++
	return r.emitObject(ctx, change.Replaced, object)
}

func (r *run) emitObject(ctx context.Context, op change.Op, object *frame.Object) error {
	rec := r.record(op, object)
	rec.Snapshot, rec.Sink = r.snapshot, r.request.sink
	return r.push(ctx, &rec)
}

// emitDeleted tells of an object that is gone and whose delete no watch saw. It carries the version that was delivered
// last: the delete's own is not known.
func (r *run) emitDeleted(ctx context.Context, entry change.Entry) error {
	// A ghost of the same object is a later version of it, and gone with it.
	if ghosts, found := r.ghosts[entry.Key]; found {
		r.ghosts[entry.Key] = slices.DeleteFunc(ghosts, func(g change.Ghost) bool { return g.UID == entry.UID })
	}
	return r.emitGone(ctx, entry, "")
}

// emitGhosts tells each sink of the objects of the key that only it was given, and that are gone. The object that is
// listed now, with the uid, is not.
func (r *run) emitGhosts(ctx context.Context, key change.Key, listed string) error {
	for _, ghost := range r.ghosts[key] {
		if ghost.UID == listed {
			continue
		}
		if err := r.emitGone(ctx, ghost.Entry, ghost.Sink); err != nil {
			return err
		}
	}
	delete(r.ghosts, key)
	return nil
}

func (r *run) emitGone(ctx context.Context, entry change.Entry, sink string) error {
	r.snapshot.Counts.Deleted++
	return r.push(ctx, &change.Record{
		Stream: &r.stream, Op: change.Deleted, Key: entry.Key, UID: entry.UID, ResourceVersion: entry.ResourceVersion,
		Received: time.Now(), FinalStateUnknown: true, Snapshot: r.snapshot, Sink: sink,
	})
}

// emitFrame tells of the reconcile itself. Where a full snapshot is for one sink, so are its frames.
func (r *run) emitFrame(ctx context.Context, op change.Op, position change.Position) error {
	snapshot := *r.snapshot // the counts go on changing
	return r.push(ctx, &change.Record{
		Stream: &r.stream, Op: op, ResourceVersion: snapshot.ResourceVersion, Received: time.Now(),
		Snapshot: &snapshot, Sink: r.request.sink, Position: position,
	})
}
