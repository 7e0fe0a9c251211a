package pipeline

import (
	"errors"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/sink"
)

func bookmark(stream change.Stream, version string) *change.Record {
	return &change.Record{
		Stream: &stream, Op: change.Bookmark, ResourceVersion: version, Position: change.Position{ResourceVersion: version, Complete: true},
	}
}

// found is a record of a reconcile at the version.
func found(rec *change.Record, op change.Op, reason change.Reason, at string) *change.Record {
	rec.Op, rec.Position = op, change.Position{}
	rec.Snapshot = &change.Snapshot{ID: at + ".1", Reason: reason, ResourceVersion: at}
	return rec
}

// A crash left a record of a stream in the log that has been quiet since: only a bookmark tells that it will not come
// again.
func TestI3BookmarkThatPassesTheTailFreesTheMark(t *testing.T) {
	for _, version := range []string{"3", "4"} {
		target := &memory{}
		r := crashed(t, target, update(services(), "x", 3))
		if err := r.life(func(line *Inlet) {
			r.push(line, update(pods(), "a", 2), bookmark(services(), version))
			r.drain(line, pods(), services())
			if mark, _, err := r.store.Mark("s"); err != nil || mark != "3" {
				t.Errorf("mark after a bookmark at %s is %q, %v; want 3, the log's end", version, mark, err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// What is before the bookmark and not delivered yet still needs the tail.
func TestI3BookmarkWaitsForTheRecordsBeforeIt(t *testing.T) {
	target := &memory{}
	r := crashed(t, target, update(pods(), "a", 3))
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 3), bookmark(pods(), "9"), bookmark(services(), "9"))
		r.drain(line, pods(), services())
	}); err != nil || target.short() != "a/1/updated a/3/updated" {
		t.Errorf("%v; log is %s", err, target.short())
	}
}

// A compacted log holds the newest record of an object only. An older one that comes again was delivered before it.
func TestI3OlderRecordIsNotWrittenBehindANewerOneOfACompactedLog(t *testing.T) {
	target := &memory{}
	gone := update(pods(), "b", 8)
	gone.Op = change.Deleted
	r := crashed(t, target, update(pods(), "a", 7), gone)
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 5), update(pods(), "b", 6), update(pods(), "c", 6), update(pods(), "a", 7), gone, update(pods(), "a", 9))
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	if got, want := target.short(), "a/1/updated a/7/updated b/8/deleted c/6/updated a/9/updated"; got != want {
		t.Errorf("log is %s, want %s", got, want)
	}
}

// What a reconcile put into the log lies after a gap. If the server can continue the old position after all, the
// states between come again: written now, they would take the object back.
func TestI3NothingOlderIsWrittenBehindWhatAReconcileFound(t *testing.T) {
	target := &memory{}
	r := crashed(t, target, found(update(pods(), "a", 7), change.Replaced, change.Gone, "9"))
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 5))
		r.drain(line, pods())
	}); err != nil || target.short() != "a/1/updated a/7/replaced" {
		t.Errorf("%v; log is %s", err, target.short())
	}
}

// The log has the object that took the place of another one, and not the delete between: it was compacted, or no watch
// told of it. A reconcile tells of that delete from the saved state, where the first object still is.
func TestI3DeleteIsNotWrittenBehindTheNextObjectOfItsName(t *testing.T) {
	target := &memory{}
	next := update(pods(), "a", 7)
	next.UID = "another"
	r := crashed(t, target, next, update(pods(), "b", 8))
	unseen := func(name string) *change.Record {
		rec := found(update(pods(), name, 1), change.Deleted, change.Gone, "9")
		rec.FinalStateUnknown = true
		return rec
	}
	same := found(update(pods(), "a", 7), change.Replaced, change.Gone, "9")
	same.UID = next.UID
	if err := r.life(func(line *Inlet) {
		r.push(line, unseen("a"), same, unseen("b"))
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	if got, want := target.short(), "a/1/updated a/7/updated b/8/updated b/1/deleted"; got != want {
		t.Errorf("log is %s, want %s", got, want)
	}
}

// A snapshot that a crash left unpaid runs again, at the saved position. Its log has gone on meanwhile.
func TestI3SnapshotIsNotWrittenBehindWhatTheLogHoldsAlready(t *testing.T) {
	target := &memory{}
	r := crashed(t, target, update(pods(), "a", 7), found(update(pods(), "b", 8), change.Replaced, change.Gone, "9"))
	sync := func(name string, version int) *change.Record {
		rec := found(update(pods(), name, version), change.Sync, change.NewSink, "5")
		rec.Sink = "s"
		return rec
	}
	if err := r.life(func(line *Inlet) {
		r.push(line, sync("a", 1), sync("b", 4), sync("c", 4), found(update(pods(), "a", 3), change.Replaced, change.NewSink, "5"))
		r.push(line, update(pods(), "a", 7))
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	if got, want := target.short(), "a/1/updated a/7/updated b/8/replaced c/4/sync"; got != want {
		t.Errorf("log is %s, want %s", got, want)
	}
}

// Under another epoch a lower version is the later one.
func TestI4EpochIsWrittenBehindWhateverTheLogHolds(t *testing.T) {
	target := &memory{}
	r := crashed(t, target, update(pods(), "a", 90))
	if err := r.life(func(line *Inlet) {
		r.push(line, found(update(pods(), "a", 40), change.Replaced, change.Epoch, "50"))
		r.drain(line, pods())
	}); err != nil || target.short() != "a/1/updated a/90/updated a/40/replaced" {
		t.Errorf("%v; log is %s", err, target.short())
	}
}

// A crash came after a correction of a resync. No watch brings it again, and the next resync is far.
func TestI3CorrectionThatWasNotSavedIsLookedForAgain(t *testing.T) {
	for interrupted, want := range map[bool]string{false: "pods resync s", true: ""} {
		target := &memory{}
		r := newRig(t, sinkOf("s", target))
		last := update(pods(), "b", 9)
		if interrupted { // a reconcile that is due finds it
			last.Position.Selector = change.Interrupted
		}
		if err := r.life(func(line *Inlet) {
			r.push(line, update(pods(), "a", 2), last)
			r.drain(line, pods())
		}); err != nil {
			t.Fatal(err)
		}
		r.requests = nil
		unseen := found(update(pods(), "a", 2), change.Deleted, change.Resync, "9")
		unseen.FinalStateUnknown = true
		target.log = append(target.log, idOf(unseen), idOf(update(pods(), "b", 10)))
		if err := r.life(func(*Inlet) {}); err != nil {
			t.Fatal(err)
		}
		if got := r.requested(); got != want {
			t.Errorf("interrupted %t: asked for %q, want %q", interrupted, got, want)
		}
	}
}

// The mark lies before what was delivered of a history that is over. Its delete says nothing of the object that an etcd
// which was restored brought back, and its versions are no versions of this one.
func TestI4RecordsOfAnEarlierHistoryHideNothing(t *testing.T) {
	target := &memory{}
	r := newRig(t, sinkOf("s", target))
	back := found(update(pods(), "a", 5), change.Replaced, change.Epoch, "6")
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "x", 6), back)
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	before := func(rec *change.Record) *change.Record { rec.Epoch = "another~1"; return rec }
	gone := before(update(pods(), "a", 20))
	gone.Op = change.Deleted
	target.log = append([]string{target.log[0], idOf(before(update(pods(), "a", 8))), idOf(before(update(pods(), "x", 9))), idOf(gone)}, target.log[1:]...)
	store, err := checkpoint.Open(t.Context(), r.dir, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(store.Commit(checkpoint.Batch{Marks: map[string]sink.Mark{"s": "1"}}), store.Close()); err != nil {
		t.Fatal(err)
	}
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 8), update(pods(), "x", 9))
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	if got, want := target.short(), "x/6/updated a/8/updated x/9/updated a/20/deleted a/5/replaced a/8/updated x/9/updated"; got != want {
		t.Errorf("log is %s, want %s", got, want)
	}
}

// A crash in a reconcile left deletes in the log that carry old versions. A full snapshot ends at the saved position,
// above them, and the reconcile is still to come again.
func TestI3FullSnapshotLeavesWhatAReconcileWillTellAgain(t *testing.T) {
	target := &memory{}
	unseen := func() *change.Record {
		rec := found(update(pods(), "b", 2), change.Deleted, change.Gone, "30")
		rec.FinalStateUnknown = true
		return rec
	}
	r := newRig(t, sinkOf("s", target))
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "b", 2), update(pods(), "a", 11))
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	target.log = append(target.log, idOf(unseen()))
	end := found(update(pods(), "", 11), change.SnapshotEnd, change.Requested, "11")
	end.UID, end.Sink, end.Position = "", "s", change.Position{ResourceVersion: "11", Complete: true}
	if err := r.life(func(line *Inlet) {
		r.push(line, end, unseen())
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	if got, want := target.short(), "b/2/updated a/11/updated b/2/deleted /11/snapshot.end"; got != want {
		t.Errorf("log is %s, want %s", got, want)
	}
}

// A watch never told that an object is gone, and told of the next one of its name: the log has both, and a mark before
// them.
func TestI3WhatAnotherObjectTookThePlaceOfIsNoSinkOnlyObject(t *testing.T) {
	target := &memory{}
	next := update(pods(), "a", 8)
	next.UID = "another"
	r := newRig(t, sinkOf("s", target))
	if err := r.life(func(line *Inlet) {
		r.push(line, next)
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	before := found(update(pods(), "a", 4), change.Replaced, change.Initial, "6")
	target.log = append(target.log, idOf(before), idOf(next))
	if err := r.life(func(line *Inlet) {
		if sinkOnly := line.SinkOnly(pods()); len(sinkOnly) > 0 {
			t.Errorf("there are sink-only objects: %+v", sinkOnly)
		}
	}); err != nil {
		t.Fatal(err)
	}
}
