package redo

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestI3AMissedObjectIsNotReplacedByWhatWasThereBefore: until the gap of its return the sink takes what is from before
// it missed the stream. After the gap a live change may come before the deletes of the return.
func TestI3AMissedObjectIsNotReplacedByWhatWasThereBefore(t *testing.T) {
	entry := func(uid string) change.Entry {
		return change.Entry{Key: anotherB(1).Key, UID: uid, ResourceVersion: "8"}
	}
	gap := found(update(pods(), "", 90), change.Gap, change.Absent, "90")
	gap.Sink, gap.Key, gap.UID = "s", change.Key{}, ""
	var missed Undeleted
	missed.Recall("pods", entry("recalled")) // nothing of it is on disk
	missed.Await("pods", []change.Entry{entry("recalled"), entry("waits")}, 7)
	for _, step := range []struct {
		generation uint64 // of the gap that is taken before, 0 is none
		want       int
	}{{0, 1}, {6, 1}, {7, 2}} {
		if gap.Snapshot.Generation = step.generation; step.generation > 0 {
			missed.Takes(gap)
		}
		if gone := missed.ReplacedBy(anotherB(15)); len(gone) != step.want {
			t.Errorf("behind the gap of generation %d %v are replaced, want %d", step.generation, gone, step.want)
		}
	}
	missed.Await("pods", []change.Entry{entry("waits")}, 8)
	if gone := missed.ReplacedBy(anotherB(15)); len(gone) != 1 {
		t.Errorf("what was told behind its gap waits for another: %v", gone)
	}
}

// TestI3ADeleteThatASourceHoldsIsKnownUntilItsReturnIsOver: the listener tells of an object, and the state knows, while
// a source still holds the delete that it has read before. After the return nobody does.
func TestI3ADeleteThatASourceHoldsIsKnownUntilItsReturnIsOver(t *testing.T) {
	deleted := found(update(pods(), "a", 5), change.Deleted, change.Absent, "9")
	end := found(update(pods(), "", 9), change.SnapshotEnd, change.Absent, "9")
	deleted.Sink, end.Sink = "s", "s"
	again := found(update(pods(), "a", 5), change.Replaced, change.Epoch, "8")
	for name, c := range map[string]struct {
		saved bool
		takes []*change.Record
		held  bool
	}{
		"saved": {true, nil, true}, "over": {false, []*change.Record{end}, true},
		"over and saved": {true, []*change.Record{end}, false}, "there again": {true, []*change.Record{again}, false},
	} {
		var missed Undeleted
		missed.Recall("pods", change.Entry{Key: deleted.Key, UID: deleted.UID, ResourceVersion: "5"})
		missed.Tells(deleted)
		for _, rec := range c.takes {
			missed.Takes(rec)
		}
		if c.saved {
			missed.Saved(deleted.UID)
		}
		if held := missed.HasTold(deleted); held != c.held || missed.Settled() == c.held {
			t.Errorf("%s: that it was told is known: %t; nothing needs a look: %t", name, held, missed.Settled())
		}
	}
}

// TestI3ADeleteInLineIsNotRecalled: the state is read, and meanwhile a delete goes in line, which the state does not
// know before it is saved.
func TestI3ADeleteInLineIsNotRecalled(t *testing.T) {
	deleted := found(update(pods(), "a", 5), change.Deleted, change.Gone, "9")
	entries := []change.Entry{{Key: deleted.Key, UID: deleted.UID, ResourceVersion: "5"}}
	var missed Undeleted
	missed.Enters(deleted)
	missed.Enters(deleted) // a restored etcd has had it again
	for saved, want := range []int{0, 0, 1} {
		if missed.Replace("pods", entries); len(missed.Of("pods")) != want {
			t.Errorf("with %d of 2 deletes saved %v is recalled, want %d", saved, missed.Of("pods"), want)
		}
		missed.Leave([]*change.Record{update(pods(), "a", 5), deleted})
	}
}
