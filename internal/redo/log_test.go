package redo

import (
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// withSinkOnly is what a log with a, b and c leaves.
func withSinkOnly(t *testing.T, use func(d *Log)) {
	t.Helper()
	use(logOf(t, &saved{}, update(pods(), "a", 2), update(pods(), "b", 3), update(pods(), "c", 4)))
}

// names are the objects' names in their order.
func names(entries []change.Entry) string {
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Key.Name)
	}
	return strings.Join(all, " ")
}

// A list that is older than a sink-only object proves nothing of it; one of another history, whatever its version,
// does.
func TestI3ReconcileProvesNothingOfWhatIsNewer(t *testing.T) {
	withSinkOnly(t, func(d *Log) {
		for at, want := range map[string]string{"2": "a", "3": "a b", "20": "a b c"} {
			end := found(update(pods(), "", 20), change.SnapshotEnd, change.Gone, at)
			if got := names(d.Left(end, clusterUID)); got != want {
				t.Errorf("at the end of a list at %s %q are left, want %q", at, got, want)
			}
			if end.Epoch = change.NewEpoch(clusterUID, 7); names(d.Left(end, clusterUID)) != "a b c" {
				t.Errorf("at the end of a list of another history %q are left", names(d.Left(end, clusterUID)))
			}
			if end.Sink = "s"; len(d.Left(end, clusterUID)) > 0 {
				t.Error("a full snapshot's end proves something")
			}
		}
		for version, want := range map[int]string{2: "", 15: "b"} {
			if _, gone := d.Take(anotherB(version), &Taking{ClusterUID: clusterUID}); names(gone) != want {
				t.Errorf("before another b of version %d %q is gone, want %q", version, names(gone), want)
			}
		}
	})
}

// A queue that coalesces may leave nothing of the next object but its delete. In another history the object may be an
// older one.
func TestI4DeleteOfTheNextObjectProvesThatTheSinkOnlyObjectIsGone(t *testing.T) {
	withSinkOnly(t, func(d *Log) {
		older, foreign, later := anotherB(2), anotherB(15), anotherB(15)
		older.UID, foreign.UID, foreign.Epoch = "older", "foreign", change.NewEpoch(clusterUID, 7)
		for _, step := range []struct {
			rec  *change.Record
			want string
		}{{older, ""}, {foreign, ""}, {later, "b"}} {
			step.rec.Op = change.Deleted
			if _, gone := d.Take(step.rec, &Taking{ClusterUID: clusterUID}); names(gone) != step.want {
				t.Errorf("before the delete of %s %q is gone, want %q", step.rec.UID, names(gone), step.want)
			}
		}
	})
}

// While the end of a reconcile that did not know the sink-only objects is on disk, another reconcile asks for them. Who
// comes first tells, and the other does not; a queue that leaves the second delete out ends the wait as well.
func TestI3SinkOnlyObjectThatTwoTellOfIsToldOnce(t *testing.T) {
	unseen, end, over := unseenC(), endAt(20), endAt(30)
	end.Seq, unseen.Seq, over.Seq = 4, 5, 6
	for _, how := range []string{"asked", "in line", "on disk", "left out", "never told"} {
		t.Run(how, func(t *testing.T) {
			withSinkOnly(t, func(d *Log) {
				d.Ask("pods")
				if how != "asked" && how != "never told" {
					d.Enters(unseen, clusterUID)
					d.Enters(over, clusterUID)
				}
				if how == "on disk" { // an earlier process put it there
					d.tails["pods"].sinkOnly = newSinkOnly()
				}
				now := &Taking{ClusterUID: clusterUID, Behind: how == "on disk", Gone: d.Left(end, clusterUID)}
				if _, gone := d.Take(end, now); names(gone) != "a b c" {
					t.Fatalf("%q are gone", names(gone))
				}
				if d.Empty() {
					t.Fatal("the tail is forgotten though a delete is to come")
				}
				switch how {
				case "asked":
					d.Enters(unseen, clusterUID)
					d.Enters(over, clusterUID)
				case "left out":
					d.Leaves(unseen)
				case "never told":
					d.Enters(over, clusterUID)
				}
				if how != "on disk" {
					d.DropOver(5)
				}
				if waits := how != "left out" && how != "never told"; waits == d.Empty() {
					t.Fatalf("the tail is forgotten: %t", d.Empty())
				}
				if found, _ := d.Take(unseen, &Taking{ClusterUID: clusterUID}); found == (how == "left out" || how == "never told") {
					t.Errorf("the second delete is skipped: %t", found)
				}
				if d.DropOver(6); !d.Empty() {
					t.Error("the tail is kept behind the second delete")
				}
			})
		})
	}
}

// TestI4WhatAReconcileHasLeftToTheWatchIsNotGone: it was asked for the objects, and has found b in a state that the
// watch is to bring. That its end comes without a word of b proves nothing, also where the watch loses the change.
func TestI4WhatAReconcileHasLeftToTheWatchIsNotGone(t *testing.T) {
	withSinkOnly(t, func(d *Log) {
		before, end := endAt(19), endAt(20)
		before.Seq, end.Seq = 4, 6
		d.Ask("pods")
		d.Enters(end, clusterUID)
		if got := names(d.Left(before, clusterUID)); got == "" {
			t.Error("at the end of a reconcile that was not asked nothing is left")
		}
		if got := names(d.Left(end, clusterUID)); got != "" {
			t.Errorf("at the end of the reconcile that was asked %q are left", got)
		}
	})
}

// A delete that went in line before the log was read, or that an earlier process put on disk, is not known to be there.
// So a reconcile asks for its object, and the second delete is in line when the sink takes the first.
func TestI3SinkOnlyObjectWhoseDeleteWasInLineUnseenIsToldOnce(t *testing.T) {
	for how, seq := range map[string]uint64{"in memory": 3, "on disk": 0} {
		t.Run(how, func(t *testing.T) {
			withSinkOnly(t, func(d *Log) {
				first, second := update(pods(), "c", 9), unseenC()
				first.Op, first.Seq, second.Seq = change.Deleted, seq, 7
				d.Ask("pods")
				d.Enters(second, clusterUID)
				d.Enters(endAt(30), clusterUID)
				if found, _ := d.Take(first, &Taking{ClusterUID: clusterUID, Behind: seq == 0}); found {
					t.Error("the log is said to have the delete")
				}
				d.Take(endAt(20), &Taking{ClusterUID: clusterUID, Behind: seq == 0})
				d.DropOver(7)
				if found, _ := d.Take(second, &Taking{ClusterUID: clusterUID}); !found {
					t.Error("the delete is told twice")
				}
				if d.DropOver(8); !d.Empty() {
					t.Error("the tail is kept behind the second delete")
				}
			})
		})
	}
}

// A delete that was noted when it went in line, and went to disk from there, is the only one.
func TestI3SinkOnlyObjectWhoseOnlyDeleteComesFromDiskIsForgottenBehindIt(t *testing.T) {
	withSinkOnly(t, func(d *Log) {
		only := unseenC()
		only.Seq = 7
		d.Enters(only, clusterUID)
		fromDisk := unseenC()
		d.Take(fromDisk, &Taking{ClusterUID: clusterUID, Behind: true})
		d.Take(endAt(20), &Taking{ClusterUID: clusterUID, Behind: true})
		if d.DropOver(8); !d.Empty() {
			t.Error("the tail is kept for a delete that has come")
		}
	})
}

// The delete that was in line before the sink was open tells of a sink-only object first, and a reconcile that asked
// meanwhile is second.
func TestI3SinkOnlyObjectIsToldOnceByARecordThatWasInLineBefore(t *testing.T) {
	withSinkOnly(t, func(d *Log) {
		first, now := update(pods(), "c", 9), &Taking{ClusterUID: clusterUID}
		first.Op = change.Deleted
		d.Ask("pods")
		if found, _ := d.Take(first, now); found {
			t.Error("the log is said to have the delete")
		}
		d.Take(endAt(20), now)
		d.Enters(unseenC(), clusterUID)
		d.Enters(endAt(30), clusterUID)
		if found, _ := d.Take(unseenC(), now); !found {
			t.Error("the delete is told twice")
		}
		if d.Take(endAt(30), now); !d.Empty() {
			t.Error("the tail is kept behind the second delete")
		}
	})
}

// A delete that is in line is not asked for again, whoever told it.
func TestI3SinkOnlyObjectWhoseDeleteIsInLineIsNotAskedForAgain(t *testing.T) {
	withSinkOnly(t, func(d *Log) {
		gone := update(pods(), "b", 9)
		gone.Op = change.Deleted
		d.Enters(gone, clusterUID)
		entries := d.Ask("pods")
		slices.SortFunc(entries, func(a, b change.Entry) int { return strings.Compare(a.Key.Name, b.Key.Name) })
		if names(entries) != "a c" {
			t.Errorf("asked, it tells of %q", names(entries))
		}
		if names(d.Left(found(update(pods(), "", 20), change.SnapshotEnd, change.Gone, "20"), clusterUID)) != "a b c" {
			t.Error("a reconcile whose end comes before that delete does not look at the sink-only object")
		}
	})
}

// The server lost the delete of an object, and the next one of its name is saved. A log that is read from before both
// has no sink-only object: the delete would take the second object away.
func TestI3ObjectWhoseNameAnotherHasInTheStateIsNoSinkOnlyObject(t *testing.T) {
	first := found(update(pods(), "a", 3), change.Replaced, change.Initial, "4")
	first.UID = "first"
	second := update(pods(), "a", 5)
	state := &saved{position: second.Position, objects: map[change.Key]change.Entry{
		second.Key: {Key: second.Key, UID: second.UID, ResourceVersion: second.ResourceVersion},
	}}
	if sinkOnly := logOf(t, state, first, second).Ask("pods"); len(sinkOnly) > 0 {
		t.Errorf("the sink-only objects are %+v", sinkOnly)
	}
}

// A letter that is sent again as history is behind something newer in the log, which a crash may have kept from being
// saved: the sink-only object is the newer one.
func TestI3HistoryInALogTakesNoSinkOnlyObjectAway(t *testing.T) {
	settled := update(pods(), "a", 5)
	state := &saved{position: settled.Position, objects: map[change.Key]change.Entry{
		settled.Key: {Key: settled.Key, UID: settled.UID, ResourceVersion: settled.ResourceVersion},
	}}
	d := logOf(t, state, update(pods(), "a", 7), update(pods(), "a", 3))
	if sinkOnly := d.Ask("pods"); len(sinkOnly) != 1 || sinkOnly[0].ResourceVersion != "7" {
		t.Errorf("the sink-only objects are %v", sinkOnly)
	}
}

// TestI3WhatWentToDiskWithinAReconcileComesAgain: the position stands still meanwhile, and the inventory, which is
// ahead of it, says nothing of what a log may hold that was not read yet.
func TestI3WhatWentToDiskWithinAReconcileComesAgain(t *testing.T) {
	interrupted := change.Position{ResourceVersion: "7", Selector: change.Interrupted}
	stream := pods()
	for base, want := range map[change.Position]bool{
		{}: true, interrupted: false, {ResourceVersion: "7"}: false, {ResourceVersion: "6"}: false,
	} {
		l := Ledger{State: &saved{position: interrupted}}
		if base != (change.Position{}) {
			l.ReplayBase = map[string]change.Position{stream.String(): base}
		}
		deleted := update(stream, "a", 7) // and the inventory does not have it
		deleted.Op = change.Deleted
		if got, err := l.Settled(deleted.ID(clusterUID), &stream); err != nil || got != want {
			t.Errorf("with a base of %+v the delete is settled: %t, %v; want %t", base, got, err, want)
		}
	}
}

// What the watch brought after a reconcile may take the place of what that had found. The reconcile is known all the
// same.
func TestI4SinkOnlyObjectBeforeAMergedRecordIsOfTheReconcile(t *testing.T) {
	withSinkOnly(t, func(d *Log) {
		begin := found(update(pods(), "", 20), change.SnapshotBegin, change.Gone, "20")
		merged, now := anotherB(21), &Taking{ClusterUID: clusterUID}
		merged.Op, merged.Snapshot, begin.UID = change.Updated, nil, ""
		d.Take(begin, now)
		if _, gone := d.Take(merged, now); names(gone) != "b" || now.Frame != begin.Snapshot {
			t.Errorf("before it %q is gone, of %+v", names(gone), now.Frame)
		}
	})
}

// A delete that no watch saw carries the version of the record before it, and so of that one's note.
func TestI4TheNoteOfARecordIsNoNoteOfItsDelete(t *testing.T) {
	rejected := update(pods(), "a", 2)
	gone := update(pods(), "a", 2)
	gone.Op, gone.FinalStateUnknown = change.Deleted, true
	note := change.NoteOf(rejected, "too_large", "")
	spooled := newSpooledIDs([]*change.Record{rejected, gone}, clusterUID)
	spooled.found(note.ID(clusterUID).String())
	again := spooled.again()
	if _, found := again[gone.ID(clusterUID)]; found || len(again) != 1 {
		t.Errorf("of %v the log holds %v", gone.ID(clusterUID), again)
	}
}

// TestI3TheNoteOfAnInterruptedReconcileComesAgain: what a reconcile found carries an older version than the position,
// which says nothing of it while the reconcile is under way.
func TestI3TheNoteOfAnInterruptedReconcileComesAgain(t *testing.T) {
	rec := found(update(pods(), "a", 3), change.Replaced, change.Gone, "9")
	note, stream := change.NoteOf(rec, "too_large", "").ID(clusterUID), pods()
	interrupted := change.Position{ResourceVersion: "7", Selector: change.Interrupted}
	had := map[change.Key]change.Entry{rec.Key: {Key: rec.Key, UID: rec.UID, ResourceVersion: "3"}}
	for _, c := range []struct {
		state saved
		want  bool
	}{
		{saved{position: interrupted}, false},
		{saved{position: interrupted, objects: had}, true},
		{saved{position: change.Position{ResourceVersion: "7"}}, true},
	} {
		if got, err := (Ledger{State: &c.state}).Settled(note, &stream); err != nil || got != c.want {
			t.Errorf("of %+v the note is settled: %t, %v; want %t", c.state, got, err, c.want)
		}
	}
}

// Only a full snapshot finds again what one has corrected. The watch may pass the version before that, and the log is
// known until then, so that no correction is written twice.
func TestI3TheWatchPassesNoCorrection(t *testing.T) {
	state := &saved{
		position: change.Position{ResourceVersion: "10", Complete: true},
		objects:  map[change.Key]change.Entry{{Namespace: "n", Name: "a"}: {UID: "uid-a", ResourceVersion: "2"}},
	}
	correction := func() *change.Record {
		rec := found(update(pods(), "a", 2), change.Deleted, change.Resync, "10")
		rec.FinalStateUnknown = true
		return rec
	}
	stream, ending := pods(), endAt(12)
	ending.Snapshot.Reason, ending.Sink = change.Resync, "s"
	limited := endAt(12)
	limited.Snapshot.Reason, limited.Snapshot.Limits, limited.Sink = change.Requested, change.Limits{Namespace: "n"}, "s"
	for what, last := range map[string]*change.Record{"the correction": correction(), "the end of a snapshot without it": ending} {
		l := logOf(t, state, correction(), update(pods(), "b", 11))
		if !l.Corrected(&stream) {
			t.Fatal("the log is not known to have a correction")
		}
		for version := 11; version < 13; version++ {
			l.Take(update(pods(), "b", version), &Taking{ClusterUID: clusterUID})
		}
		if l.Empty() {
			t.Fatalf("%s: the watch has passed the correction", what)
		}
		if l.Take(limited, &Taking{ClusterUID: clusterUID}); !l.Corrected(&stream) {
			t.Errorf("%s: a snapshot of a part is taken for one that has compared everything", what)
		}
		if taken, _ := l.Take(last, &Taking{ClusterUID: clusterUID}); taken != (last.Op == change.Deleted) {
			t.Errorf("%s is known: %t", what, taken)
		}
		if l.Take(update(pods(), "b", 13), &Taking{ClusterUID: clusterUID}); !l.Empty() {
			t.Errorf("behind %s the log is not forgotten", what)
		}
	}
}
