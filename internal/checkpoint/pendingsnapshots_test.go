package checkpoint

import (
	"slices"
	"testing"

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

// A snapshot that is asked for again while it is read: the end of that pays nothing, also over a crash.
func TestI4PendingSnapshotThatIsNotedAgainIsPaidByItsOwnOnly(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	first := owe("lake", "pods", change.Requested)
	must(t, s.Commit(Batch{PendingSnapshots: []PendingSnapshot{first, owe("bus", "pods", change.Requested)}}))
	must(t, s.Commit(Batch{PendingSnapshots: []PendingSnapshot{first}}))
	must(t, s.Pay(first))
	must(t, s.Close())
	s = open(t, dir)
	second := first
	second.Generation = 1
	wantPending(t, s, owe("bus", "pods", change.Requested), second)
	must(t, s.Pay(second))
	wantPending(t, s, owe("bus", "pods", change.Requested))
	must(t, s.Forget("bus"))
	wantPending(t, s)
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
