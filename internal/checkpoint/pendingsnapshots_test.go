package checkpoint

import (
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kubecdc/kubecdc/internal/change"
)

func owe(sinkName, stream string, reason change.Reason) PendingSnapshot {
	return PendingSnapshot{Stream: stream, Owed: change.Owed{Sink: sinkName, Reason: reason}}
}

func wantPending(t *testing.T, s *Store, want ...PendingSnapshot) {
	t.Helper()
	if got, err := s.PendingSnapshots(); err != nil || !slices.Equal(got, want) {
		t.Errorf("pending snapshots are %+v, %v; want %+v", got, err, want)
	}
}

// synced is an object of a snapshot that the sink is owed.
func synced(sinkName, name string, snapshot change.Snapshot) *change.Record {
	rec := object(change.Sync, name, "u", "3")
	rec.Sink, rec.Snapshot, rec.Position = sinkName, &snapshot, change.Position{}
	return rec
}

// A log that is lost again while its own snapshot runs: the end of that snapshot pays nothing, also over a crash.
func TestI4PendingSnapshotThatIsNotedAgainIsPaidByItsOwnOnly(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	lost := owe("lake", "pods", change.Lost)
	must(t, s.Commit(Batch{PendingSnapshots: []PendingSnapshot{lost}}))
	wantPending(t, s, lost)
	must(t, s.Commit(Batch{PendingSnapshots: []PendingSnapshot{lost}}))
	must(t, s.Commit(Batch{Records: []*change.Record{paid("lake", change.Lost)}})) // of the first generation
	must(t, s.Close())
	s = open(t, dir)
	lost.Generation = 1
	wantPending(t, s, lost)
	end := paid("lake", change.Lost)
	end.Snapshot.Generation = 1
	must(t, s.Commit(Batch{Records: []*change.Record{end}}))
	wantPending(t, s)
}

func TestI5PendingSnapshotRemembersHowFarItCame(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	pendingSnapshot := owe("lake", "pods", change.NewSink)
	must(t, s.Commit(Batch{PendingSnapshots: []PendingSnapshot{pendingSnapshot}}))
	ordered := change.Snapshot{Reason: change.NewSink, Ordered: true}
	must(t, s.Commit(Batch{Records: []*change.Record{synced("lake", "a", ordered), synced("lake", "b", ordered), synced("bus", "c", ordered)}}))
	must(t, s.Close())
	s = open(t, dir)
	pendingSnapshot.After = "shop/b"
	wantPending(t, s, pendingSnapshot)

	// What is in no order, of another generation or for another reason moves nothing.
	loose, other, resync := ordered, ordered, ordered
	loose.Ordered, other.Generation, resync.Reason = false, 7, change.Resync
	must(t, s.Commit(Batch{Records: []*change.Record{synced("lake", "x", loose), synced("lake", "y", other), synced("lake", "z", resync)}}))
	wantPending(t, s, pendingSnapshot)
	must(t, s.Commit(Batch{PendingSnapshots: []PendingSnapshot{pendingSnapshot}}))
	pendingSnapshot.Generation, pendingSnapshot.After = 1, ""
	wantPending(t, s, pendingSnapshot)
}

// Before there were generations a pending snapshot had no value.
func TestI4PendingSnapshotOfAnOlderVersionIsReadAndPaid(t *testing.T) {
	s := open(t, t.TempDir())
	pendingSnapshot := owe("lake", "pods", change.NewSink)
	must(t, s.db.Set(pendingKey(pendingSnapshot), nil, pebble.Sync))
	wantPending(t, s, pendingSnapshot)
	must(t, s.Commit(Batch{Records: []*change.Record{paid("lake", change.NewSink)}}))
	wantPending(t, s)
	must(t, s.db.Set(pendingKey(pendingSnapshot), []byte{0x80}, pebble.Sync))
	if _, err := s.PendingSnapshots(); err == nil {
		t.Error("a value that nobody wrote is read as a pending snapshot")
	}
}

// TestI5ASnapshotThatWasStoppedIsKnown until it is owed again, or its end was under way.
func TestI5ASnapshotThatWasStoppedIsKnown(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	asked := owe("lake", "pods", change.Requested)
	want := func(n int) {
		t.Helper()
		if all, err := s.StoppedSnapshots(); err != nil || len(all) != n {
			t.Errorf("stopped are %+v, %v; want %d", all, err, n)
		}
	}
	must(t, s.Commit(Batch{PendingSnapshots: []PendingSnapshot{asked}}))
	want(0)
	must(t, s.Commit(Batch{Steered: []PendingSnapshot{asked}, Steering: Stop}))
	must(t, s.Close())
	s = open(t, dir)
	want(1)
	wantPending(t, s)
	must(t, s.Commit(Batch{PendingSnapshots: []PendingSnapshot{asked}}))
	want(0)
}
