package checkpoint

import (
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kubecdc/kubecdc/internal/change"
)

func owe(sinkName, stream string, reason change.Reason) Debt {
	return Debt{Stream: stream, Owed: change.Owed{Sink: sinkName, Reason: reason}}
}

func wantDebts(t *testing.T, s *Store, want ...Debt) {
	t.Helper()
	if got, err := s.Debts(); err != nil || !slices.Equal(got, want) {
		t.Errorf("debts are %+v, %v; want %+v", got, err, want)
	}
}

// synced is an object of a snapshot that the sink is owed.
func synced(sinkName, name string, snapshot change.Snapshot) *change.Record {
	rec := object(change.Sync, name, "u", "3")
	rec.Sink, rec.Snapshot, rec.Position = sinkName, &snapshot, change.Position{}
	return rec
}

// A log that is lost again while its own snapshot runs: the end of that snapshot pays nothing, also over a crash.
func TestI4DebtThatIsNotedAgainIsPaidByItsOwnSnapshotOnly(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	lost := owe("lake", "pods", change.Lost)
	must(t, s.Commit(Batch{Debts: []Debt{lost}}))
	wantDebts(t, s, lost)
	must(t, s.Commit(Batch{Debts: []Debt{lost}}))
	must(t, s.Commit(Batch{Records: []*change.Record{paid("lake", change.Lost)}})) // of the first generation
	must(t, s.Close())
	s = open(t, dir)
	lost.Generation = 1
	wantDebts(t, s, lost)
	end := paid("lake", change.Lost)
	end.Snapshot.Generation = 1
	must(t, s.Commit(Batch{Records: []*change.Record{end}}))
	wantDebts(t, s)
}

func TestI5DebtRemembersHowFarItsSnapshotCame(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	debt := owe("lake", "pods", change.NewSink)
	must(t, s.Commit(Batch{Debts: []Debt{debt}}))
	ordered := change.Snapshot{Reason: change.NewSink, Ordered: true}
	must(t, s.Commit(Batch{Records: []*change.Record{synced("lake", "a", ordered), synced("lake", "b", ordered), synced("bus", "c", ordered)}}))
	must(t, s.Close())
	s = open(t, dir)
	debt.After = "shop/b"
	wantDebts(t, s, debt)

	// What is in no order, of another generation or for another reason moves nothing.
	loose, other, resync := ordered, ordered, ordered
	loose.Ordered, other.Generation, resync.Reason = false, 7, change.Resync
	must(t, s.Commit(Batch{Records: []*change.Record{synced("lake", "x", loose), synced("lake", "y", other), synced("lake", "z", resync)}}))
	wantDebts(t, s, debt)
	must(t, s.Commit(Batch{Debts: []Debt{debt}}))
	debt.Generation, debt.After = 1, ""
	wantDebts(t, s, debt)
}

// Before there were generations a debt had no value.
func TestI4DebtOfAnOlderVersionIsReadAndPaid(t *testing.T) {
	s := open(t, t.TempDir())
	debt := owe("lake", "pods", change.NewSink)
	must(t, s.db.Set(debtKey(debt), nil, pebble.Sync))
	wantDebts(t, s, debt)
	must(t, s.Commit(Batch{Records: []*change.Record{paid("lake", change.NewSink)}}))
	wantDebts(t, s)
	must(t, s.db.Set(debtKey(debt), []byte{0x80}, pebble.Sync))
	if _, err := s.Debts(); err == nil {
		t.Error("a value that nobody wrote is read as a debt")
	}
}
