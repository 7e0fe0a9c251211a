package checkpoint

import (
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// gate runs Pebble's compactions one at a time, and none before the database is open: pebble.Open otherwise waits for
// the compactions that its own recovery starts, for most of a second after some crashes.
//
// Pebble may hold its own lock when it calls TrySchedule, so the gate never holds mu while it calls Pebble.
type gate struct {
	db pebble.DBForCompaction // set by Register, before all other calls

	mu       sync.Mutex
	opened   bool
	closed   bool
	running  bool           // a compaction runs or is being granted
	granting sync.WaitGroup // calls of db in progress
}

// Register is called once by pebble.Open.
func (g *gate) Register(_ int, db pebble.DBForCompaction) { g.db = db }

// Unregister is called once by Close; Pebble is not called any more when it returns.
func (g *gate) Unregister() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.granting.Wait()
}

// TrySchedule grants a compaction where none runs. A refused one waits for grant.
func (g *gate) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.opened || g.closed || g.running {
		return false, nil
	}
	g.running = true
	return true, g
}

// UpdateGetAllowedWithoutPermission has nothing to update: one compaction is always allowed.
func (g *gate) UpdateGetAllowedWithoutPermission() {}

// Started, MeasureCPU and CumulativeStats are told how a compaction fares.
func (g *gate) Started()                                          {}
func (g *gate) MeasureCPU(pebble.CompactionGoroutineKind)         {}
func (g *gate) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// Done ends a compaction and starts the next that waits.
func (g *gate) Done() {
	g.release()
	g.grant()
}

// open lets compactions run, from now on.
func (g *gate) open() {
	g.mu.Lock()
	g.opened = true
	g.mu.Unlock()
	g.grant()
}

// grant starts a waiting compaction, if none runs. It asks again after a grant that was not taken, because one that
// began to wait in the meantime was refused.
func (g *gate) grant() {
	for g.reserve() {
		waiting, _ := g.db.GetWaitingCompaction()
		taken := waiting && g.db.Schedule(g)
		if !taken {
			g.release()
			waiting, _ = g.db.GetWaitingCompaction()
		}
		g.granting.Done()
		if taken || !waiting {
			return
		}
	}
}

func (g *gate) reserve() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.opened || g.closed || g.running {
		return false
	}
	g.running = true
	g.granting.Add(1)
	return true
}

func (g *gate) release() {
	g.mu.Lock()
	g.running = false
	g.mu.Unlock()
}
