package pipeline

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// begun is a rig whose state says that an initial snapshot at 6 is under way, while the sink's log has its end and what
// the watch brought then. The log is compacted.
func begun(t *testing.T, target *memory, held ...*change.Record) *rig {
	t.Helper()
	r := newRig(t, sinkOf("s", target))
	if err := r.life(func(line *Inlet) {
		first := bookmark(pods(), "6")
		first.Position = change.InitialPosition("6", "", "")
		r.push(line, first)
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	for _, rec := range held {
		target.log = append(target.log, idOf(rec))
	}
	return r
}

// listed is a record of the initial snapshot at 6.
func listed(name string, version int) *change.Record {
	return found(update(pods(), name, version), change.Replaced, change.Initial, "6")
}

// endOfInitial is the end of the initial snapshot at 6.
func endOfInitial() *change.Record {
	end := found(update(pods(), "", 6), change.SnapshotEnd, change.Initial, "6")
	end.UID, end.Position = "", change.Position{ResourceVersion: "6", Complete: true}
	return end
}

// TestI3AnInitialSnapshotThatGoesOnWritesNothingBehindNewer: it lists at a version that the sink's log is ahead of.
// What the log has is not written again, by the snapshot or after it, and nothing older is.
func TestI3AnInitialSnapshotThatGoesOnWritesNothingBehindNewer(t *testing.T) {
	target := &memory{}
	r := begun(t, target, listed("a", 3), update(pods(), "b", 9), gone(pods(), "c", 8), update(pods(), "d", 10))
	if err := r.life(func(line *Inlet) {
		if sinkOnly := line.SinkOnly(pods()); len(sinkOnly) != 3 {
			t.Errorf("sink-only objects are %+v, want a, b and d: nothing is settled yet", sinkOnly)
		}
		r.push(line, listed("a", 3), listed("b", 2), listed("c", 4), listed("e", 5), endOfInitial())
		r.push(line, gone(pods(), "c", 8), update(pods(), "b", 9), update(pods(), "d", 10), update(pods(), "a", 11))
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	if got, want := target.short(), "a/3/replaced b/9/updated c/8/deleted d/10/updated e/5/replaced /6/snapshot.end a/11/updated"; got != want {
		t.Errorf("log is %s, want %s", got, want)
	}
	if r.requested() != "" {
		t.Errorf("an initial snapshot that goes on asked for %s", r.requested())
	}
}

// TestI5NothingIsSettledBeforeTheEndOfTheInitialSnapshot: what the log of another stream of the same objects left comes
// again.
func TestI5NothingIsSettledBeforeTheEndOfTheInitialSnapshot(t *testing.T) {
	target := &memory{}
	r := begun(t, target, update(pods(), "a", 3))
	if err := r.life(func(line *Inlet) {
		r.push(line, listed("a", 3), endOfInitial())
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	if got, want := target.short(), "a/3/updated /6/snapshot.end"; got != want {
		t.Errorf("log is %s, want %s", got, want)
	}
}
