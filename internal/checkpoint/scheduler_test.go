package checkpoint

import (
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// fakeDB wants compactions as Pebble does: it calls TrySchedule and is called with its lock held, and remembers that it
// waits when it is refused.
type fakeDB struct {
	t       *testing.T
	gate    *gate
	mu      sync.Mutex
	todo    int
	waiting bool
	running int
	work    sync.WaitGroup
}

func (f *fakeDB) GetAllowedWithoutPermission() int { return 1 }

func (f *fakeDB) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waiting, pebble.WaitingCompaction{}
}

func (f *fakeDB) Schedule(handle pebble.CompactionGrantHandle) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.waiting || f.todo == 0 {
		f.waiting = false
		return false
	}
	f.start(handle)
	return true
}

// want asks for one more compaction.
func (f *fakeDB) want() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.todo++
	f.work.Add(1)
	f.tryLocked()
}

func (f *fakeDB) tryLocked() {
	for f.todo > 0 && !f.waiting {
		ok, handle := f.gate.TrySchedule()
		if !ok {
			f.waiting = true
			return
		}
		f.start(handle)
	}
}

// start runs a compaction; the lock is held.
func (f *fakeDB) start(handle pebble.CompactionGrantHandle) {
	f.todo--
	if f.running++; f.running > 1 {
		f.t.Error("two compactions run")
	}
	go func() {
		f.mu.Lock()
		f.running--
		f.mu.Unlock()
		handle.Done()
		f.work.Done()
	}()
}

// TestI6OneCompactionAtATime: every compaction that is wanted runs, none beside another, and none before the opening.
func TestI6OneCompactionAtATime(t *testing.T) {
	for range 200 {
		g := &gate{}
		db := &fakeDB{t: t, gate: g}
		g.Register(2, db)
		db.want()
		if db.running != 0 {
			t.Fatal("a compaction runs before the database is open")
		}
		var wanting sync.WaitGroup
		for range 4 {
			wanting.Go(func() {
				for range 20 {
					db.want()
				}
			})
		}
		g.open()
		wanting.Wait()
		db.work.Wait() // hangs if a waiting compaction is forgotten
		g.Unregister()
		if ok, _ := g.TrySchedule(); ok {
			t.Fatal("a compaction starts after Unregister")
		}
	}
}
