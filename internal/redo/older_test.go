package redo

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// synced is what a full snapshot at version 50 gave of the object.
func synced(name string, version int) *change.Record {
	return found(update(pods(), name, version), change.Sync, change.Absent, "50")
}

// TestI11ASnapshotTellsOfWhatTheStateHasNotComeTo: a sink was absent, was told by a full snapshot how the objects are,
// and the state is one from before that. The watch brings again what the sink was never told, and its log is ahead.
func TestI11ASnapshotTellsOfWhatTheStateHasNotComeTo(t *testing.T) {
	old := update(pods(), "b", 20)
	state := &saved{position: change.Position{ResourceVersion: "27", Complete: true}, objects: map[change.Key]change.Entry{
		old.Key: {Key: old.Key, UID: old.UID, ResourceVersion: "20"},
	}}
	l := logOf(t, state, synced("a", 28), synced("b", 32))
	for _, again := range []struct {
		rec  *change.Record
		want bool
	}{
		{update(pods(), "a", 28), true},
		{update(pods(), "b", 29), true}, // after the log's version it would lead back in time
		{update(pods(), "b", 32), true},
		{update(pods(), "b", 33), false},
	} {
		if taken, _ := l.Take(again.rec, &Taking{ClusterUID: clusterUID}); taken != again.want {
			t.Errorf("the log has %s at %s: %t", again.rec.Key, again.rec.ResourceVersion, taken)
		}
	}
	if !l.Empty() {
		t.Error("the log is not forgotten")
	}
	if !logOf(t, state, synced("b", 20), synced("gone", 27)).Empty() {
		t.Error("what the state has, or has passed, is to come again")
	}
}

// TestI11ASnapshotOfWhatIsOnDiskIsAhead: the state has the version, and the records of it are still to come from disk.
func TestI11ASnapshotOfWhatIsOnDiskIsAhead(t *testing.T) {
	stream, told := pods(), synced("a", 28)
	state := &saved{position: change.Position{ResourceVersion: "30"}, objects: map[change.Key]change.Entry{
		told.Key: {Key: told.Key, UID: told.UID, ResourceVersion: "28"},
	}}
	for _, replays := range []bool{true, false} {
		ledger := replaying(state, replays)
		ledger.ReplayBase[stream.String()] = change.Position{ResourceVersion: "27"}
		if settled, err := ledger.Settled(told.ID(clusterUID), &stream); err != nil || settled == replays {
			t.Errorf("the sync is settled: %t, %v; and its object comes from disk: %t", settled, err, replays)
		}
	}
}

// TestI11ASyncBehindItsUpdateIsToldOnce: what the watch told and a full snapshot gave again is one state to come.
func TestI11ASyncBehindItsUpdateIsToldOnce(t *testing.T) {
	l := logOf(t, &saved{position: change.Position{ResourceVersion: "3"}}, update(pods(), "a", 5), synced("a", 5))
	if taken, _ := l.Take(update(pods(), "a", 5), &Taking{ClusterUID: clusterUID}); !taken || !l.Empty() {
		t.Errorf("the log has the update: %t; and nothing else is to come: %t", taken, l.Empty())
	}
}

// TestI11ADeleteThatNoWatchSawIsToldOnce: it has the version of the state before it. To an older state the watch brings
// that, and the delete itself with a version that the log does not name.
func TestI11ADeleteThatNoWatchSawIsToldOnce(t *testing.T) {
	gone := found(update(pods(), "a", 6), change.Deleted, change.Absent, "14")
	gone.FinalStateUnknown = true
	begin := found(update(pods(), "", 14), change.SnapshotBegin, change.Absent, "14")
	begin.UID = ""
	l := logOf(t, &saved{position: change.Position{ResourceVersion: "3"}}, begin, gone)
	deleted := update(pods(), "a", 12)
	deleted.Op = change.Deleted
	for _, rec := range []*change.Record{update(pods(), "a", 5), update(pods(), "a", 6), deleted} {
		if taken, _ := l.Take(rec, &Taking{ClusterUID: clusterUID}); !taken {
			t.Errorf("%s at %s is told behind the delete", rec.Op, rec.ResourceVersion)
		}
		other := update(pods(), "b", 8)
		other.Position.Complete = true
		l.Take(other, &Taking{ClusterUID: clusterUID}) // after the version that the delete has
	}
	if l.Take(update(pods(), "b", 15), &Taking{ClusterUID: clusterUID}); !l.Empty() {
		t.Error("behind the snapshot the log is not forgotten")
	}
}

// TestI11ADeleteOfWhatTheStateDoesNotHaveIsNotSaved: the log alone knows the object, which a full snapshot found, and
// its delete. The watch brings that, and not the object.
func TestI11ADeleteOfWhatTheStateDoesNotHaveIsNotSaved(t *testing.T) {
	object, gone := found(update(pods(), "a", 6), change.Replaced, change.Resync, "9"), update(pods(), "a", 6)
	gone.Op = change.Deleted
	l := logOf(t, &saved{position: change.Position{ResourceVersion: "7", Complete: true}}, object, gone)
	deleted := update(pods(), "a", 12)
	deleted.Op = change.Deleted
	if taken, _ := l.Take(deleted, &Taking{ClusterUID: clusterUID}); !taken {
		t.Error("the delete is told twice")
	}
}

// TestI11WhatAnUnseenDeletePassedOverIsNotToldBehindIt: a stream was compared after a gap though the server remembers
// everything, and an object was gone. To an older state the watch brings the states of it that the sink was not told,
// and the delete. What comes after the gap is another matter: an object can enter a selection again. A mark that goes
// on carries what tells that.
func TestI11WhatAnUnseenDeletePassedOverIsNotToldBehindIt(t *testing.T) {
	frame := func(op change.Op) *change.Record {
		rec := found(update(pods(), "", 20), op, change.Stale, "20")
		rec.Key, rec.UID = change.Key{}, ""
		return rec
	}
	gone := found(update(pods(), "a", 5), change.Deleted, change.Stale, "20")
	gone.FinalStateUnknown = true
	old := update(pods(), "a", 5)
	kept := map[change.Key]change.Entry{old.Key: {Key: old.Key, UID: old.UID, ResourceVersion: "5"}}
	before := &saved{position: change.Position{ResourceVersion: "3"}}
	knowing := &saved{position: change.Position{ResourceVersion: "5", Complete: true}, objects: kept}
	ofLog := logOf(t, before, old, frame(change.Gap), frame(change.SnapshotBegin), gone)
	ofState := logOf(t, knowing, frame(change.Gap), frame(change.SnapshotBegin), gone)
	carried := func(l *Log, state State) *Log {
		ids, _ := l.Remaining()
		return logOfIDs(t, state, ids...)
	}
	for what, l := range map[string]*Log{
		"the log": ofLog, "the state": ofState, "a mark": carried(ofLog, before), "a mark behind the state": carried(ofState, knowing),
	} {
		deleted := update(pods(), "a", 15)
		deleted.Op = change.Deleted
		for _, rec := range []*change.Record{update(pods(), "a", 8), deleted} {
			if taken, _ := l.Take(rec, &Taking{ClusterUID: clusterUID}); !taken {
				t.Errorf("%s has the object: %s at %s is told behind the delete", what, rec.Op, rec.ResourceVersion)
			}
		}
		if taken, _ := l.Take(update(pods(), "a", 21), &Taking{ClusterUID: clusterUID}); taken || !l.Empty() {
			t.Errorf("%s has the object: it is not told again behind the gap", what)
		}
	}
}

// TestI3AMarkCarriesTheDeleteOfWhatItCarries: the state has come to another object of the name, and does not know the
// first by a version that a full snapshot or a comparison gave. A comparison at a later version must not tell its end.
func TestI3AMarkCarriesTheDeleteOfWhatItCarries(t *testing.T) {
	first, gone := found(update(pods(), "a", 13), change.Replaced, change.Initial, "13"), update(pods(), "a", 18)
	gone.Op = change.Deleted
	another := map[change.Key]change.Entry{first.Key: {Key: first.Key, UID: "another", ResourceVersion: "27"}}
	l := logOf(t, &saved{position: change.Position{ResourceVersion: "27", Complete: true}, objects: another},
		first, update(pods(), "a", 14), gone)
	ids, _ := l.Remaining()
	stream := pods()
	compared := change.ComparedPosition("44", "", "")
	if left := logOfIDs(t, &saved{position: compared, objects: another}, ids...).Ask(stream.String()); len(left) > 0 {
		t.Errorf("the sink is to be told of %v, and it was", left)
	}
}

// TestI3NothingIsToldBehindADeleteOfItsName: a queue that coalesces has left of an object its delete alone, and nothing
// of the one that had the name before. To an older state the watch brings all of that (I11), also beside a comparison.
func TestI3NothingIsToldBehindADeleteOfItsName(t *testing.T) {
	deleted := update(pods(), "a", 17)
	deleted.Op = change.Deleted
	before := update(pods(), "a", 14)
	before.Op, before.UID = change.Added, "before"
	ended := update(pods(), "a", 15)
	ended.Op, ended.UID = change.Deleted, "before"
	later := update(pods(), "a", 18)
	later.Op, later.UID = change.Added, "later"
	listed := found(update(pods(), "a", 14), change.Replaced, change.Resync, "14")
	listed.UID = "before"
	for _, position := range []change.Position{{ResourceVersion: "5"}, change.ComparedPosition("5", "", "")} {
		for _, rec := range []*change.Record{before, ended, listed} {
			l := logOf(t, &saved{position: position}, deleted)
			if taken, _ := l.Take(rec, &Taking{ClusterUID: clusterUID}); !taken {
				t.Errorf("%s of %s at %s is told behind a delete at 17; the state is at %v", rec.Op, rec.UID, rec.ResourceVersion, position)
			}
		}
		if taken, _ := logOf(t, &saved{position: position}, deleted).Take(later, &Taking{ClusterUID: clusterUID}); taken {
			t.Error("what comes behind the delete is left out")
		}
	}
}

// TestI4ANameIsTakenInAnotherHistoryAfterADeleteOfTheFormerOne: a cluster that counts from below was found behind the
// address. The delete of what the former one had is told in the new history, with a version of the former one.
func TestI4ANameIsTakenInAnotherHistoryAfterADeleteOfTheFormerOne(t *testing.T) {
	epoch := change.NewEpoch(clusterUID, 7)
	gone, another := update(pods(), "a", 22), update(pods(), "a", 12)
	gone.Op, gone.Epoch, gone.FinalStateUnknown = change.Deleted, epoch, true
	another.Op, another.Epoch, another.UID = change.Added, epoch, "another"
	l := logOf(t, &saved{position: change.Position{ResourceVersion: "5", Epoch: epoch}}, gone)
	if taken, _ := l.Take(another, &Taking{ClusterUID: clusterUID}); taken {
		t.Error("the object that is there is left out")
	}
}

// TestI4WhatALaterPageFoundIsNotOlderThanTheLog: the watch had lost the change, and the comparison, which began at 7,
// found it when its list was read again at 28. The log has an older state of the object, above 7.
func TestI4WhatALaterPageFoundIsNotOlderThanTheLog(t *testing.T) {
	l := logOf(t, &saved{position: change.InitialPosition("7", "", "")}, found(update(pods(), "a", 10), change.Replaced, change.Stale, "11"))
	for version, want := range map[int]bool{9: true, 18: false} {
		again := found(update(pods(), "a", version), change.Replaced, change.Initial, "7")
		if taken, _ := l.Take(again, &Taking{ClusterUID: clusterUID}); taken != want {
			t.Errorf("the state at %d is left out behind that at 10: %t", version, taken)
		}
	}
}

// TestI4WhatTakesThePlaceOfAMissedObjectComesBehindItsDelete: a return is cut short, and a live change comes before the
// deletes that the sink has missed. The listener tells that delete, and leaves it out later.
func TestI4WhatTakesThePlaceOfAMissedObjectComesBehindItsDelete(t *testing.T) {
	old := update(pods(), "a", 5)
	entry := change.Entry{Key: old.Key, UID: "before", ResourceVersion: "5"}
	stream := pods()
	var missed Undeleted
	missed.Replace(stream.String(), []change.Entry{entry})
	if gone := missed.ReplacedBy(update(pods(), "a", 8)); len(gone) != 1 || gone[0] != entry {
		t.Errorf("what is gone before the change is %v", gone)
	}
	if gone := missed.ReplacedBy(update(pods(), "b", 8)); len(gone) > 0 {
		t.Errorf("what is gone before a change of another name is %v", gone)
	}
	for version, want := range map[int]int{4: 0, 8: 1} { // of the object before, and of the one after
		other := update(pods(), "a", version)
		other.Op = change.Deleted
		if gone := missed.ReplacedBy(other); len(gone) != want {
			t.Errorf("what is gone before another delete at %d is %v", version, gone)
		}
	}
	deleted := found(update(pods(), "a", 5), change.Deleted, change.Absent, "9")
	deleted.UID, deleted.Sink = "before", "s"
	if missed.HasTold(deleted) {
		t.Error("the delete is told, and nobody has told it")
	}
	if missed.Tells(deleted); !missed.HasTold(deleted) || len(missed.ReplacedBy(update(pods(), "a", 8))) > 0 {
		t.Error("the delete that was told is told again")
	}
}

// TestI4AnObjectThatAnotherHistoryHasAgainIsTold: the log has its delete, and the etcd was restored to before that. In
// its own history the delete is later than each of the records.
func TestI4AnObjectThatAnotherHistoryHasAgainIsTold(t *testing.T) {
	state := &saved{position: change.Position{ResourceVersion: "3"}}
	gone := update(pods(), "a", 28)
	gone.Op = change.Deleted
	synced := synced("a", 21)
	synced.Snapshot.ResourceVersion = "24"
	listed := found(update(pods(), "a", 21), change.Replaced, change.Gone, "24")
	for name, again := range map[string]*change.Record{"sync": synced, "replaced": listed, "updated": update(pods(), "a", 25)} {
		for _, epoch := range []string{"", change.NewEpoch(clusterUID, 7)} {
			l := logOf(t, state, update(pods(), "a", 20), gone, update(pods(), "b", 29))
			rec := *again
			rec.Epoch = epoch
			found, _ := l.Take(&rec, &Taking{ClusterUID: clusterUID})
			if want := epoch == ""; found != want {
				t.Errorf("%s of epoch %q is said to be in the log: %t", name, epoch, found)
			}
		}
	}
}
