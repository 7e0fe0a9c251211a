package source

import (
	"context"
	"fmt"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// difference is what one attempt of a reconcile tells: what the sinks lack, and what is gone.
type difference struct {
	out *output
	// snapshot is what the records for all sinks belong to: the difference.
	snapshot *change.Snapshot
	// parts are those for whom it is: each sink that is owed a full snapshot, or all as one.
	parts     []*part
	inventory *merge
	sinkOnly  sinkOnly
	held      held
	block     block
	left      change.Position                       // the position while it is under way, none where it stays
	goesOn    bool                                  // the gap was told
	gone      func(context.Context, unlisted) error // takes an entry that the list does not have
	upTo      string                                // the version that the page which is read has at most, "" while that is not known
	oldest    string                                // the version of its oldest page
	sorted    bool                                  // the list is proven to be in the inventory's order: see order.go
	passed    []unlisted                            // until then, those that the list has passed over
	nobody    int                                   // items without a name
}

// unlisted is an entry of the inventory that a list of the version does not have.
type unlisted struct {
	entry    change.Entry
	list     string // the version that the list has at most, "" until it is known
	oldest   string // what was told after this version, too, the list need not have; "" is list
	replaced bool   // the list has another object under its key
}

// isVague says whether the version of the list was never known.
func (u unlisted) isVague() bool { return u.list == "" }

// isFollowedBy says whether another object than the entry's was told last under its name, and so that the entry's is
// gone, where the list has another one, too.
func (u unlisted) isFollowedBy(last change.Entry) bool { return u.replaced && last.UID != u.entry.UID }

// shown is what the observer is told of the snapshot: a gap of a sink alone has its own begin.
func (d *difference) shown() *change.Snapshot {
	shown := *d.snapshot
	shown.From, shown.Since = d.parts[0].snapshot.From, d.parts[0].snapshot.Since
	return &shown
}

// begin announces the gap, where there is one, and the reconcile that mends it (I4).
func (d *difference) begin(ctx context.Context) error {
	d.out.Observer.Reconciling(d.out.stream, d.shown())
	if d.meetsAnother() && d.out.Meet != nil {
		if err := d.out.Meet(change.ClusterOf(d.out.epoch)); err != nil {
			return fmt.Errorf("save the uid of the cluster: %w", err)
		}
	}
	if d.snapshot.Gap() != nil && !d.goesOn {
		if err := d.emitFrames(ctx, change.Gap, change.Position{}); err != nil {
			return err
		}
	}
	if err := d.emitFrames(ctx, change.SnapshotBegin, d.left); err != nil || d.snapshot.Reason != change.Absent {
		return err
	}
	return d.emitUndeleted(ctx)
}

// meetsAnother says whether the difference is of a history that was found in this life, or of another cluster, which a
// stream that begins may find instead of the one that this life began with.
func (d *difference) meetsAnother() bool {
	return d.snapshot.Reason == change.Epoch || change.ClusterOf(d.out.epoch) != d.out.ClusterUID
}

// emitFrames tells of the reconcile itself, to those for whom it is. Its end carries the position.
func (d *difference) emitFrames(ctx context.Context, op change.Op, position change.Position) error {
	for _, p := range d.parts {
		snapshot := *p.snapshot // the counts go on changing
		snapshot.Counts.Replaced, snapshot.Counts.Deleted = d.snapshot.Counts.Replaced, d.snapshot.Counts.Deleted
		err := d.out.push(ctx, &change.Record{
			Stream: &d.out.stream, Op: op, ResourceVersion: snapshot.ResourceVersion, Received: time.Now(),
			Snapshot: &snapshot, Sink: p.owed.Sink, Position: position,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// emitReplaced tells all sinks of an object that differs from what they have.
func (d *difference) emitReplaced(ctx context.Context, object *frame.Object, entry change.Entry) error {
	key := change.Key{Namespace: object.Namespace, Name: object.Name}
	d.snapshot.Counts.Replaced++
	d.correct(change.Correction{
		Op: change.Replaced, Key: key, UID: object.UID, Version: object.ResourceVersion, Had: entry.UID, HadVersion: entry.ResourceVersion,
	})
	rec := d.block.take()
	*rec = d.out.record(change.Replaced, object)
	rec.Snapshot = d.snapshot
	d.out.Observer.tellUnreadable(rec, object.Err)
	return d.hold(ctx, rec)
}

// emitSync gives an unchanged object to the sinks that are owed it.
func (d *difference) emitSync(ctx context.Context, object *frame.Object) error {
	if err := d.keepMissing(ctx, object); err != nil {
		return err
	}
	for _, p := range d.parts {
		key := change.Key{Namespace: object.Namespace, Name: object.Name}
		if p.owed.After != "" && key.String() <= p.owed.After {
			continue
		}
		p.snapshot.Counts.Synced++
		rec := d.block.take()
		*rec = d.out.record(change.Sync, object)
		rec.Snapshot, rec.Sink = p.snapshot, p.owed.Sink
		if err := d.hold(ctx, rec); err != nil {
			return err
		}
	}
	return nil
}

// keepMissing keeps an unchanged object of which nothing is kept, as it would be delivered: one that was delivered
// before objects were kept, or in another form. The record is nobody's.
func (d *difference) keepMissing(ctx context.Context, object *frame.Object) error {
	if d.out.Images == nil {
		return nil
	}
	rec := d.out.record(change.Sync, object)
	if _, found, err := d.out.last(rec.Key, rec.UID); found || err != nil {
		return err
	}
	rec.Snapshot = d.snapshot
	if err := d.out.shape(&rec); err != nil || rec.Filtered || rec.Withheld != "" {
		return err
	}
	rec.Filtered = true
	return d.out.enter(ctx, &rec) // it may pass what is held: that is of other objects
}

// correct tells the observer of a difference that no watch told of: every one that a full snapshot finds.
func (d *difference) correct(c change.Correction) {
	if d.snapshot.Reason.Full() {
		c.Reason = d.snapshot.Reason
		d.out.Observer.Corrected(d.out.stream, c)
	}
}

// emitDeleted tells of an object that is gone and whose delete no watch saw. It carries the newest version that any
// sink was given: the delete's own is not known.
func (d *difference) emitDeleted(ctx context.Context, entry change.Entry) error {
	d.correct(change.Correction{Op: change.Deleted, Key: entry.Key, Had: entry.UID, HadVersion: entry.ResourceVersion})
	return d.emitGone(ctx, d.sinkOnly.take(entry), "")
}

// listedNobody is listed for an item of which not even the name can be told. What the inventory has at its place in the
// list may be it, so nothing there is told to be gone.
func (d *difference) listedNobody(ctx context.Context, why error) error {
	d.inventory.passUnknown()
	if d.nobody++; d.nobody > 1 {
		return nil
	}
	gap := change.Snapshot{Reason: change.Policy, From: d.snapshot.From, ResourceVersion: d.snapshot.ResourceVersion}
	return d.out.pushUnreadable(ctx, gap, why)
}

// emitUndeleted tells sinks that come back what is gone, before all else: with the first object they are whole but for
// the rest of the list.
func (d *difference) emitUndeleted(ctx context.Context) error {
	for key, sinkOnly := range d.sinkOnly {
		for _, object := range sinkOnly {
			if !object.Undeleted {
				continue
			}
			if entry, found, err := d.out.lookUp(key); err != nil {
				return err
			} else if found && entry.UID == object.UID { // a comparison has come to it since
				continue
			}
			if err := d.emitGone(ctx, object.Entry, object.Sink); err != nil {
				return err
			}
		}
		d.sinkOnly.drop(key, func(g change.SinkOnly) bool { return g.Undeleted })
	}
	return nil
}

// emitSinkOnly tells each sink of the objects of the key that only it was given, and that are gone. The object that is
// listed now, with the uid, is not.
func (d *difference) emitSinkOnly(ctx context.Context, key change.Key, listed string) error {
	for _, object := range d.sinkOnly[key] {
		if object.UID == listed {
			continue
		}
		if err := d.emitGone(ctx, object.Entry, object.Sink); err != nil {
			return err
		}
	}
	delete(d.sinkOnly, key)
	return nil
}

// emitAllSinkOnly tells of what only one sink was given and no list has.
func (d *difference) emitAllSinkOnly(ctx context.Context) error {
	for key := range d.sinkOnly {
		if err := d.emitSinkOnly(ctx, key, ""); err != nil {
			return err
		}
	}
	return nil
}

func (d *difference) emitGone(ctx context.Context, entry change.Entry, sink string) error {
	d.snapshot.Counts.Deleted++
	return d.hold(ctx, &change.Record{
		Stream: &d.out.stream, Op: change.Deleted, Key: entry.Key, UID: entry.UID, ResourceVersion: entry.ResourceVersion,
		Received: time.Now(), FinalStateUnknown: true, Snapshot: d.snapshot, Sink: sink,
	})
}

// tellEnd tells the observer that all is told. Objects are counted once, however many sinks have them.
func (d *difference) tellEnd() {
	for _, p := range d.parts {
		d.snapshot.Counts.Synced = max(d.snapshot.Counts.Synced, p.snapshot.Counts.Synced)
	}
	d.out.Observer.Reconciled(d.out.stream, d.snapshot)
}

// hold shapes the record and puts those in line that it follows.
func (d *difference) hold(ctx context.Context, rec *change.Record) error {
	if err := d.out.shape(rec); err != nil {
		return err
	}
	return d.let(ctx, d.held.add(rec, d.parts))
}

// releaseLast marks what is held and may be last, and puts all of it in line.
func (d *difference) releaseLast(ctx context.Context) error {
	d.held.mark(d.parts)
	return d.release(ctx)
}

// release puts what is held in line.
func (d *difference) release(ctx context.Context) error { return d.let(ctx, len(d.held.records)) }

// let puts the first n that are held in line.
func (d *difference) let(ctx context.Context, n int) error {
	for i, rec := range d.held.records[:n] {
		if err := d.out.enter(ctx, rec); err != nil {
			d.held.drop(i)
			return err
		}
	}
	d.held.drop(n)
	return nil
}

// meets prepares for a record of the watch: what is held of its key goes first, and what the sinks, or one alone, have
// under it is told to be gone, unless the record tells that itself. The caller has the turn.
func (d *difference) meets(ctx context.Context, rec *change.Record) error {
	if d.held.has(rec.Key) {
		if err := d.release(ctx); err != nil {
			return err
		}
	}
	if !d.snapshot.Reason.Full() && rec.Op.OfObject() {
		if err := d.endPredecessor(ctx, rec); err != nil {
			return err
		}
	}
	if err := d.emitSinkOnly(ctx, rec.Key, rec.UID); err != nil {
		return err
	}
	if d.held.has(rec.Key) {
		return d.release(ctx)
	}
	return nil
}

// endPredecessor tells that the object is gone that the sinks have under the record's key, where it is another one: its
// delete lies in the gap. The caller has the turn.
func (d *difference) endPredecessor(ctx context.Context, rec *change.Record) error {
	entry, found, err := d.out.lookUp(rec.Key)
	if err != nil {
		return err
	}
	last, exists, _ := d.out.recent.told(rec.Key, entry, found)
	if !exists || last.UID == rec.UID {
		return nil
	}
	return d.emitDeleted(ctx, last)
}
