package checkpoint

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kubecdc/kubecdc/internal/change"
)

// steer commits what is done with a snapshot that is owed.
func steer(t *testing.T, s *Store, do Steering, of PendingSnapshot) {
	t.Helper()
	must(t, s.Commit(Batch{Steered: []PendingSnapshot{of}, Steering: do}))
}

// TestI5ASnapshotThatIsPausedKeepsItsPlace over a crash, and while the rest that is under way comes in.
func TestI5ASnapshotThatIsPausedKeepsItsPlace(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	of := owe("lake", "pods", change.Requested)
	must(t, s.Commit(Batch{PendingSnapshots: []PendingSnapshot{of}}))
	steer(t, s, Pause, of)
	must(t, s.Close())
	s = open(t, dir)
	of.Paused = true
	wantPending(t, s, of)
	steer(t, s, Resume, of)
	of.Paused = false
	wantPending(t, s, of)
	steer(t, s, Pause, of)
	must(t, s.Pay(of)) // its end was under way
	wantPending(t, s)
}

// TestI4TheEndOfASnapshotThatWasStoppedPaysForNoOther, not even over a crash.
func TestI4TheEndOfASnapshotThatWasStoppedPaysForNoOther(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	of := owe("lake", "pods", change.Requested)
	must(t, s.Commit(Batch{PendingSnapshots: []PendingSnapshot{of}}))
	steer(t, s, Stop, of)
	wantPending(t, s)
	steer(t, s, Pause, of) // nothing is left to do it with
	steer(t, s, Resume, of)
	wantPending(t, s)
	must(t, s.Close())
	s = open(t, dir)
	wantPending(t, s)
	must(t, s.Commit(Batch{PendingSnapshots: []PendingSnapshot{of}}))
	next := of
	next.Generation = 1
	wantPending(t, s, next)
	if next.ID() == of.ID() {
		t.Error("it has the ID of the one that was stopped")
	}
	must(t, s.Pay(of))
	steer(t, s, Stop, of) // of an older generation
	wantPending(t, s, next)
}

// TestAResyncIsOwedFromItsPauseOn: nothing else would remember it.
func TestAResyncIsOwedFromItsPauseOn(t *testing.T) {
	s := open(t, t.TempDir())
	resync := owe("lake", "pods", change.Resync)
	steer(t, s, Stop, resync)
	steer(t, s, Resume, resync)
	wantPending(t, s)
	steer(t, s, Pause, resync)
	paused := resync
	paused.Paused = true
	wantPending(t, s, paused)
	steer(t, s, Resume, resync)
	wantPending(t, s, resync)
	must(t, s.Pay(resync))
	wantPending(t, s)
	steer(t, s, Pause, owe("lake", "pods", change.Requested)) // which is paid: it is not owed by its pause
	wantPending(t, s)
}

// TestI4LimitedSnapshotsAreOwedAndPaidByThemselves, also over a crash, and are gone with their sink.
func TestI4LimitedSnapshotsAreOwedAndPaidByThemselves(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	whole, shop, web := owe("lake", "pods", change.Requested), owe("lake", "pods", change.Requested), owe("lake", "pods", change.Requested)
	shop.Limits, web.Limits = change.Limits{Namespace: "shop"}, change.Limits{Namespace: "shop", Selector: `app in (web,"\u0000")`}
	must(t, s.Commit(Batch{PendingSnapshots: []PendingSnapshot{whole, shop, web}}))
	if whole.ID() == shop.ID() || shop.ID() == web.ID() {
		t.Error("two have one ID")
	}
	steer(t, s, Pause, web)
	must(t, s.Close())
	s = open(t, dir)
	web.Paused = true
	wantPending(t, s, whole, web, shop)
	must(t, s.Pay(shop))
	wantPending(t, s, whole, web)
	must(t, s.Pay(whole))
	wantPending(t, s, web)
	must(t, s.Forget("lake"))
	wantPending(t, s)
	must(t, s.db.Set(append([]byte{tableLimited}, "lake\x00pods\x00requested\x00{"...), nil, pebble.Sync))
	if _, err := s.PendingSnapshots(); err == nil {
		t.Error("limits that nobody wrote are read")
	}
}
