package source

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// run is one attempt of a reconcile.
type run struct {
	*Stream
	// snapshot is what the records for all sinks belong to: the difference.
	snapshot *change.Snapshot
	// parts are those for whom it is: each sink that is owed a full snapshot, or all as one.
	parts     []*part
	inventory *merge
	sinkOnly  map[change.Key][]change.SinkOnly
	held      held
	block     block
	left      change.Position                       // the position while the run is under way, none where it stays
	goesOn    bool                                  // the gap was told
	newest    proof                                 // of what was listed
	gone      func(context.Context, unlisted) error // takes an entry that the list does not have
	upTo      string                                // the version that the page which is read has at most, "" while that is not known
	sorted    bool                                  // the list is proven to be in the inventory's order: see order.go
	passed    []unlisted                            // until then, those that the list has passed over
	nobody    int                                   // items without a name
}

// part is a run as one sink sees it.
type part struct {
	owed     change.Owed
	pace     pace
	snapshot *change.Snapshot // of the sink's own records
}

func (s *Stream) newRun(due []change.Owed, version string, sinkOnly []change.SinkOnly) *run {
	now := max(time.Now().UnixMilli(), s.begun+1)
	s.begun = now
	if due[0].Reason == change.Epoch {
		s.epoch = change.NewEpoch(s.ClusterUID, now)
	}
	cluster := s.ClusterUID
	if s.beside != nil || due[0].Reason.Full() { // whoever watches may be finding out about another one
		cluster = change.ClusterOf(s.epoch)
	}
	r := &run{
		Stream: s,
		snapshot: &change.Snapshot{
			ID:     version + "." + strconv.FormatInt(now, 10),
			Reason: due[0].Reason, From: s.cursor.position.ResourceVersion, Since: s.heard, ResourceVersion: version, Epoch: cluster,
			Limits: due[0].Limits,
		},
		inventory: newMerge(s.Inventory, s.stream.String(), s.unsorted.Load()),
		sinkOnly:  byKey(sinkOnly),
		upTo:      version,
	}
	r.gone = func(ctx context.Context, u unlisted) error { return r.emitDeleted(ctx, u.entry) }
	r.inventory.limit(r.snapshot.Limits)
	if r.snapshot.Reason == change.Initial {
		r.snapshot.From = ""
	}
	for _, owed := range due {
		if owed.Sink != "" {
			r.snapshot.Sinks = append(r.snapshot.Sinks, owed.Sink)
		}
		if s.unsorted.Load() {
			owed.After = "" // it means something in the order of the keys only
		}
		snapshot := *r.snapshot
		snapshot.Generation = owed.Generation
		if owed.Since != 0 {
			snapshot.From, snapshot.Since = owed.From, time.UnixMilli(owed.Since)
		}
		r.parts = append(r.parts, &part{owed: owed, snapshot: &snapshot})
	}
	return r
}

// byKey is the sink-only objects by their keys.
func byKey(sinkOnly []change.SinkOnly) map[change.Key][]change.SinkOnly {
	byKey := map[change.Key][]change.SinkOnly{}
	for _, object := range sinkOnly {
		byKey[object.Key] = append(byKey[object.Key], object)
	}
	return byKey
}

// begin announces the gap, where there is one, and the reconcile that mends it (I4).
func (r *run) begin(ctx context.Context) error {
	r.Observer.Reconciling(r.stream, r.shown())
	if r.snapshot.Reason == change.Epoch && r.Meet != nil {
		if err := r.Meet(r.ClusterUID); err != nil {
			return fmt.Errorf("save the uid of the cluster: %w", err)
		}
	}
	if r.snapshot.Reason.Gap() && !r.goesOn {
		if err := r.emitFrames(ctx, change.Gap, change.Position{}); err != nil {
			return err
		}
	}
	if err := r.emitFrames(ctx, change.SnapshotBegin, r.left); err != nil || r.snapshot.Reason != change.Absent {
		return err
	}
	return r.emitUndeleted(ctx)
}

// emitUndeleted tells sinks that come back what is gone, before all else: with the first object they are whole but for
// the rest of the list.
func (r *run) emitUndeleted(ctx context.Context) error {
	for key, sinkOnly := range r.sinkOnly {
		for _, object := range sinkOnly {
			if !object.Undeleted {
				continue
			}
			if entry, found, err := r.lookUp(key); err != nil {
				return err
			} else if found && entry.UID == object.UID { // a comparison has come to it since
				continue
			}
			if err := r.emitGone(ctx, object.Entry, object.Sink); err != nil {
				return err
			}
		}
		r.sinkOnly[key] = slices.DeleteFunc(sinkOnly, func(g change.SinkOnly) bool { return g.Undeleted })
	}
	return nil
}

// shown is what the observer is told of the snapshot: a gap of a sink alone has its own begin.
func (r *run) shown() *change.Snapshot {
	shown := *r.snapshot
	shown.From, shown.Since = r.parts[0].snapshot.From, r.parts[0].snapshot.Since
	return &shown
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
	r.trust.suspect.Store(false) // everything was compared
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

// listed compares one object of the list with the inventory. What differs goes to all sinks; what does not, to those
// that are owed a full snapshot. In another history the same version may be another state of the object, so there
// everything goes to all sinks (I4).
func (r *run) listed(ctx context.Context, object *frame.Object) error {
	if object.Name == "" {
		return r.listedNobody(ctx, cmp.Or(object.Err, errNoName))
	}
	if err := r.versions.check(object, r.snapshot.ResourceVersion); err != nil {
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

// emitReplaced tells all sinks of an object that differs from what they have.
func (r *run) emitReplaced(ctx context.Context, object *frame.Object, entry change.Entry) error {
	key := change.Key{Namespace: object.Namespace, Name: object.Name}
	r.snapshot.Counts.Replaced++
	r.correct(change.Correction{
		Op: change.Replaced, Key: key, UID: object.UID, Version: object.ResourceVersion, Had: entry.UID, HadVersion: entry.ResourceVersion,
	})
	rec := r.block.take()
	*rec = r.record(change.Replaced, object)
	rec.Snapshot = r.snapshot
	r.tellUnreadable(rec, object.Err)
	return r.hold(ctx, rec)
}

// emitSync gives an unchanged object to the sinks that are owed it.
func (r *run) emitSync(ctx context.Context, object *frame.Object) error {
	if err := r.keepMissing(ctx, object); err != nil {
		return err
	}
	for _, p := range r.parts {
		key := change.Key{Namespace: object.Namespace, Name: object.Name}
		if p.owed.After != "" && key.String() <= p.owed.After {
			continue
		}
		p.snapshot.Counts.Synced++
		rec := r.block.take()
		*rec = r.record(change.Sync, object)
		rec.Snapshot, rec.Sink = p.snapshot, p.owed.Sink
		if err := r.hold(ctx, rec); err != nil {
			return err
		}
	}
	return nil
}

// correct tells the observer of a difference that no watch told of: every one that a full snapshot finds.
func (r *run) correct(c change.Correction) {
	if r.snapshot.Reason.Full() {
		c.Reason = r.snapshot.Reason
		r.Observer.Corrected(r.stream, c)
	}
}

// emitDeleted tells of an object that is gone and whose delete no watch saw. It carries the newest version that any
// sink was given: the delete's own is not known.
func (r *run) emitDeleted(ctx context.Context, entry change.Entry) error {
	r.correct(change.Correction{Op: change.Deleted, Key: entry.Key, Had: entry.UID, HadVersion: entry.ResourceVersion})
	return r.emitGone(ctx, r.takeSinkOnly(entry), "")
}

// takeSinkOnly drops the sink-only objects of the entry's object, which are later versions of it and gone with it, and
// returns the newest of all.
func (r *run) takeSinkOnly(entry change.Entry) change.Entry {
	sinkOnly, found := r.sinkOnly[entry.Key]
	if !found {
		return entry
	}
	r.sinkOnly[entry.Key] = slices.DeleteFunc(sinkOnly, func(g change.SinkOnly) bool {
		ours := g.UID == entry.UID
		if ours && change.CompareVersions(g.ResourceVersion, entry.ResourceVersion) > 0 {
			entry.ResourceVersion = g.ResourceVersion
		}
		return ours
	})
	return entry
}

// emitSinkOnly tells each sink of the objects of the key that only it was given, and that are gone. The object that is
// listed now, with the uid, is not.
func (r *run) emitSinkOnly(ctx context.Context, key change.Key, listed string) error {
	for _, object := range r.sinkOnly[key] {
		if object.UID == listed {
			continue
		}
		if err := r.emitGone(ctx, object.Entry, object.Sink); err != nil {
			return err
		}
	}
	delete(r.sinkOnly, key)
	return nil
}

// forgetSinkOnly leaves the listed object out of those that are to be told to be gone.
func (r *run) forgetSinkOnly(key change.Key, uid string) {
	if sinkOnly, found := r.sinkOnly[key]; found {
		r.sinkOnly[key] = slices.DeleteFunc(sinkOnly, func(g change.SinkOnly) bool { return g.UID == uid })
	}
}

func (r *run) emitGone(ctx context.Context, entry change.Entry, sink string) error {
	r.snapshot.Counts.Deleted++
	return r.hold(ctx, &change.Record{
		Stream: &r.stream, Op: change.Deleted, Key: entry.Key, UID: entry.UID, ResourceVersion: entry.ResourceVersion,
		Received: time.Now(), FinalStateUnknown: true, Snapshot: r.snapshot, Sink: sink,
	})
}

// emitFrames tells of the reconcile itself, to those for whom it is. Its end carries the position.
func (r *run) emitFrames(ctx context.Context, op change.Op, position change.Position) error {
	for _, p := range r.parts {
		snapshot := *p.snapshot // the counts go on changing
		snapshot.Counts.Replaced, snapshot.Counts.Deleted = r.snapshot.Counts.Replaced, r.snapshot.Counts.Deleted
		err := r.push(ctx, &change.Record{
			Stream: &r.stream, Op: op, ResourceVersion: snapshot.ResourceVersion, Received: time.Now(),
			Snapshot: &snapshot, Sink: p.owed.Sink, Position: position,
		})
		if err != nil {
			return err
		}
	}
	return nil
}
