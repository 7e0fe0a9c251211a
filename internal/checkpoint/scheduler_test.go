package checkpoint

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// fakeDB has compactions that wait.
type fakeDB struct{ waiting, running int }

func (f *fakeDB) GetAllowedWithoutPermission() int { return 1 }

func (f *fakeDB) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	return f.waiting > 0, pebble.WaitingCompaction{}
}

func (f *fakeDB) Schedule(pebble.CompactionGrantHandle) bool {
	f.waiting--
	f.running++
	return true
}

// TestI6CompactionsWaitForTheOpening: none runs before it, and one then.
func TestI6CompactionsWaitForTheOpening(t *testing.T) {
	g, db := newGate(), &fakeDB{waiting: 2}
	g.Register(2, db)
	if granted, _ := g.TrySchedule(); granted {
		t.Fatal("a compaction runs before the database is open")
	}
	if g.open(); db.running != 1 || db.waiting != 1 {
		t.Fatalf("%d compactions run, and %d wait; want one of each", db.running, db.waiting)
	}
	if granted, _ := g.TrySchedule(); granted {
		t.Fatal("two compactions run")
	}
}
