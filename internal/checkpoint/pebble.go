package checkpoint

import (
	"fmt"
	"log/slog"
	"runtime"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// pebbleOptions hold the memory of the database at about 10 MB whatever its size (I6), and the bytes written at two
// to four times the bytes saved. They were measured with a million objects. A lower L0CompactionThreshold doubles the
// bytes written. Without cgo the two memtables are on Go's heap, so that each of their bytes counts twice in the
// process: two megabytes instead of four take 8 MiB from a first snapshot, and write a sixth more of the inventory,
// in batches of a thousand records, and a quarter more of a spool. With one megabyte a full batch would be a flush of
// its own.
func pebbleOptions(dir string, opts Options, space *space, gate *gate) *pebble.Options {
	o := &pebble.Options{
		FormatMajorVersion:          pebble.FormatValueSeparation,
		FS:                          vfs.OnDiskFull(opts.fs, space.wait),
		ReadOnly:                    opts.ReadOnly,
		Logger:                      &diary{dir: dir, to: opts.Logger, exit: opts.exit},
		CacheSize:                   2 << 20,
		MemTableSize:                opts.memTable,
		MemTableStopWritesThreshold: 2,
		MaxOpenFiles:                256,
		L0CompactionThreshold:       16,
		L0StopWritesThreshold:       32,
		LBaseMaxBytes:               64 << 20,
		BytesPerSync:                512 << 10,
		MaxManifestFileSize:         8 << 20,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 1 },
	}
	o.Experimental.CompactionScheduler = gate
	o.Experimental.EnableColumnarBlocks = func() bool { return true }
	o.Experimental.FileCacheShards = 1
	o.Experimental.ReadSamplingMultiplier = -1 // no compaction is ever started by reading
	o.TargetFileSizes[0] = 2 << 20
	for i := range o.Levels {
		o.Levels[i].BlockSize, o.Levels[i].IndexBlockSize = 16<<10, 64<<10
	}
	return o
}

// diary passes on what Pebble says in the background.
type diary struct {
	dir  string
	to   *slog.Logger
	exit func(code int)
}

// Infof drops what is of no interest.
func (l *diary) Infof(string, ...any) {}

// Errorf is an error that Pebble goes on after.
func (l *diary) Errorf(format string, args ...any) {
	l.to.Warn("the state's database reports a problem", "dir", l.dir, "error", fmt.Sprintf(format, args...))
}

// Fatalf ends the process: Pebble cannot go on, and promises nothing if the call returns. What was saved is safe, and
// the next start continues there.
func (l *diary) Fatalf(format string, args ...any) {
	l.to.Error("save state: the database cannot continue; what was saved is safe, and the next start continues there",
		"dir", l.dir, "error", fmt.Sprintf(format, args...))
	l.exit(1)
	runtime.Goexit()
}
