package checkpoint

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestI5EveryCrashOfACommitLeavesAWholeBatch: of some batches with what goes to disk for a sink, through which Pebble
// changes its own files. Before everything that is done to the disk it may crash, with any part of what is not synced.
// That leaves one batch whole, and none that was acknowledged is gone.
func TestI5EveryCrashOfACommitLeavesAWholeBatch(t *testing.T) {
	type crash struct {
		acked int64 // the batch that was acknowledged last
		left  *vfs.MemFS
	}
	const first, last = 4, 24
	disk := vfs.NewCrashableMem()
	var acked atomic.Int64
	var mu sync.Mutex // guards the following
	var crashes []crash
	random := rand.New(rand.NewPCG(1, 2))
	opts := inMemory(errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if n := acked.Load(); n >= first && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			for _, unsynced := range []int{0, 35, 70, 100} {
				crashes = append(crashes, crash{n, disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: random})})
			}
		}
		return nil
	})))
	opts.memTable = 512 << 10 // several batches are in Pebble's log before it makes a table of them
	s, err := Open(t.Context(), "state", opts)
	must(t, err)
	for n := 1; n <= last; n++ {
		spools, err := spoolNumbered(s, n)
		must(t, err)
		must(t, commitWith(s, n, spools))
		acked.Store(int64(n))
	}
	must(t, s.Close())
	newer := 0
	for _, c := range crashes {
		s, err := Open(t.Context(), "state", inMemory(c.left))
		must(t, err)
		n, err := wholeBatch(s)
		if err != nil || n < int(c.acked) {
			t.Fatalf("batch %d is there, and %d was acknowledged: %v", n, c.acked, err)
		}
		if n > int(c.acked) {
			newer++
		}
		must(t, s.Close())
	}
	if t.Logf("%d crashes, %d with a newer batch", len(crashes), newer); len(crashes) < 150 || newer == 0 {
		t.Error("the test shows nothing")
	}
}
