package source

import (
	"context"
	"fmt"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// begin announces the gap, where there is one, and the reconcile that mends it (I4).
func (r *run) begin(ctx context.Context) error {
	r.Observer.Reconciling(r.stream, r.shown())
	if r.snapshot.Reason == change.Epoch && r.Meet != nil {
		if err := r.Meet(r.snapshot.Epoch); err != nil {
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

// keepMissing keeps an unchanged object of which nothing is kept, as it would be delivered: one that was delivered
// before objects were kept, or in another form. The record is nobody's.
func (r *run) keepMissing(ctx context.Context, object *frame.Object) error {
	if r.Images == nil {
		return nil
	}
	rec := r.record(change.Sync, object)
	if _, found, err := r.last(rec.Key, rec.UID); found || err != nil {
		return err
	}
	rec.Snapshot = r.snapshot
	if err := r.shape(&rec); err != nil || rec.Filtered || rec.Withheld != "" {
		return err
	}
	rec.Filtered = true
	return r.enter(ctx, &rec) // it may pass what is held: that is of other objects
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
	return r.emitGone(ctx, r.sinkOnly.take(entry), "")
}

// listedNobody is listed for an item of which not even the name can be told. What the inventory has at its place in the
// list may be it, so nothing there is told to be gone.
func (r *run) listedNobody(ctx context.Context, why error) error {
	r.inventory.passUnknown()
	if r.nobody++; r.nobody > 1 {
		return nil
	}
	version := r.snapshot.ResourceVersion
	rec := &change.Record{
		Stream: &r.stream, Op: change.Gap, ResourceVersion: version, Received: time.Now(), Marks: &change.Marks{Rejected: change.Unreadable},
		Snapshot: &change.Snapshot{ID: version, Reason: change.Policy, From: r.snapshot.From, ResourceVersion: version},
	}
	r.tellUnreadable(rec, why)
	return r.push(ctx, rec)
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
		r.sinkOnly.drop(key, func(g change.SinkOnly) bool { return g.Undeleted })
	}
	return nil
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

func (r *run) emitGone(ctx context.Context, entry change.Entry, sink string) error {
	r.snapshot.Counts.Deleted++
	return r.hold(ctx, &change.Record{
		Stream: &r.stream, Op: change.Deleted, Key: entry.Key, UID: entry.UID, ResourceVersion: entry.ResourceVersion,
		Received: time.Now(), FinalStateUnknown: true, Snapshot: r.snapshot, Sink: sink,
	})
}

// hold shapes the record and puts those in line that it follows.
func (r *run) hold(ctx context.Context, rec *change.Record) error {
	if err := r.shape(rec); err != nil {
		return err
	}
	return r.let(ctx, r.held.add(rec, r.parts))
}

// releaseLast marks what is held and may be last, and puts all of it in line.
func (r *run) releaseLast(ctx context.Context) error {
	r.held.mark(r.parts)
	return r.release(ctx)
}

// release puts what is held in line.
func (r *run) release(ctx context.Context) error { return r.let(ctx, len(r.held.records)) }

// let puts the first n that are held in line.
func (r *run) let(ctx context.Context, n int) error {
	for i, rec := range r.held.records[:n] {
		if err := r.enter(ctx, rec); err != nil {
			r.held.drop(i)
			return err
		}
	}
	r.held.drop(n)
	return nil
}
