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
			missed.Returned(gap)
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
