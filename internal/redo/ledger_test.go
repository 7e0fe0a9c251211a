package redo

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// replaying compares with a base at which the position stands still, and with which the disk may have moved on.
func replaying(state *saved, replays bool) Ledger {
	stream := pods()
	return Ledger{
		State: state, ReplayBase: map[string]change.Position{stream.String(): state.position},
		Replays: func() (bool, error) { return replays, nil },
	}
}

// TestI3WhatIsSavedAtTheSamePositionComesFromDisk: what shares the position's version, and what a full snapshot found,
// is in the inventory and not given to the sink.
func TestI3WhatIsSavedAtTheSamePositionComesFromDisk(t *testing.T) {
	stream, state := pods(), &saved{position: change.Position{ResourceVersion: "7"}}
	for _, replays := range []bool{true, false} {
		for _, version := range []int{7, 3} {
			gone := update(stream, "a", version)
			gone.Op = change.Deleted
			settled, err := replaying(state, replays).Settled(gone.ID(clusterUID), &stream)
			if err != nil || settled == replays {
				t.Errorf("the delete at %d is settled: %t, %v; and comes from disk: %t", version, settled, err, replays)
			}
		}
	}
	if settled, err := replaying(state, true).Settled(update(stream, "a", 3).ID(clusterUID), &stream); err != nil || !settled {
		t.Errorf("what a watch told below the position is settled: %t, %v", settled, err)
	}
}

// TestI3WhatComesFromDiskIsNotLookedForAgain as a correction that nobody tells of.
func TestI3WhatComesFromDiskIsNotLookedForAgain(t *testing.T) {
	stream, gone := pods(), found(update(pods(), "a", 3), change.Deleted, change.Resync, "7")
	has := map[change.Key]change.Entry{gone.Key: {Key: gone.Key, UID: gone.UID, ResourceVersion: "3"}}
	for _, state := range []*saved{{position: change.Position{ResourceVersion: "7"}}, {position: change.Position{ResourceVersion: "7"}, objects: has}} {
		got, err := replaying(state, true).isCorrection(gone.ID(clusterUID), &stream)
		if want := state.objects != nil; err != nil || got != want {
			t.Errorf("with %v in the state it is looked for: %t, %v; want %t", state.objects, got, err, want)
		}
	}
}

// TestI11WhatIsOfALaterEpochIsNotSaved where the log is compared with a position of the one before, though its version
// is below that: versions of two epochs say nothing of each other.
func TestI11WhatIsOfALaterEpochIsNotSaved(t *testing.T) {
	stream, rec := pods(), update(pods(), "a", 13)
	state := &saved{position: change.Position{ResourceVersion: "17"}}
	ledger := replaying(state, true)
	state.position = change.Position{ResourceVersion: "11", Epoch: change.NewEpoch(clusterUID, 1)}
	for epoch, want := range map[string]bool{"": true, state.position.Epoch: false} {
		rec.Epoch = epoch
		if settled, err := ledger.Settled(rec.ID(clusterUID), &stream); err != nil || settled != want {
			t.Errorf("at %d in epoch %q it is saved: %t, %v", 13, epoch, settled, err)
		}
	}
}

// TestI3ACorrectionIsLookedForBehindAPositionThatMovedOn: a sink's log is compared with the position from before, and
// the correction was not saved. Other records may be on disk, and pass the log's tail, before a reconcile finds it.
func TestI3ACorrectionIsLookedForBehindAPositionThatMovedOn(t *testing.T) {
	stream, rec := pods(), found(update(pods(), "a", 3), change.Replaced, change.Resync, "7")
	has := map[change.Key]change.Entry{rec.Key: {Key: rec.Key, UID: rec.UID, ResourceVersion: "2"}}
	moved := change.Position{ResourceVersion: "9"}
	for _, now := range []change.Position{moved, moved.Interrupt()} {
		for _, objects := range []map[change.Key]change.Entry{has, nil} {
			for _, replays := range []bool{true, false} {
				state := &saved{position: change.Position{ResourceVersion: "7"}, objects: objects}
				ledger := replaying(state, replays)
				state.position = now
				if got, err := ledger.isCorrection(rec.ID(clusterUID), &stream); err != nil || !got {
					t.Errorf("at %+v with %v, and something on disk: %t, it is not looked for: %v", now, objects, replays, err)
				}
			}
		}
	}
}

// TestI3TheNoteOfACorrectionComesAgain where the inventory is after it, and only there: what a watch told is saved.
func TestI3TheNoteOfACorrectionComesAgain(t *testing.T) {
	rec, stream := found(update(pods(), "a", 3), change.Replaced, change.Resync, "9"), pods()
	for version, want := range map[string]bool{"2": true, "3": false, "4": false} {
		state := &saved{position: change.Position{ResourceVersion: "9"}, objects: map[change.Key]change.Entry{
			rec.Key: {Key: rec.Key, UID: rec.UID, ResourceVersion: version},
		}}
		l := logOf(t, state, change.NoteOf(rec, "too_large", ""))
		if got := l.Corrected(&stream); got != want {
			t.Errorf("with version %s in the state it is looked for: %t", version, got)
		}
		l.Take(update(pods(), "b", 10), &Taking{ClusterUID: clusterUID}) // the watch passes no correction
		if taken, _ := l.Take(rec, &Taking{ClusterUID: clusterUID}); taken != want || !l.Empty() {
			t.Errorf("with version %s in the state it is known: %t", version, taken)
		}
	}
}
