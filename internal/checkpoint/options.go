package checkpoint

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kubecdc/kubecdc/internal/disk"
)

// DefaultFloor is the free space, in bytes, below which nothing is saved any more.
const DefaultFloor = 64 << 20

// Options say how a Store is opened. The zero value is for use by the pipeline.
type Options struct {
	// Logger is told what cannot be returned as an error; nil is slog.Default.
	Logger *slog.Logger
	// ReadOnly opens an existing state to look at it. The state must not be in use all the same.
	ReadOnly bool
	// Floor is the free space, in bytes, below which Open and Commit return a *disk.FullError; 0 is DefaultFloor.
	Floor uint64

	// For tests; nil is the real one.
	fs       vfs.FS
	claim    func(dir string) (io.Closer, error) // makes the directory and locks it
	memTable uint64                              // bytes
	piece    int                                 // bytes that one batch moves of an inheritance, about
	usage    func(path string) (vfs.DiskUsage, error)
	exit     func(code int)
}

// OnFS are options for a small state on another file system than the operating system's, with that one's locks and free
// space: a simulation's, which crashes.
func OnFS(fs vfs.FS) Options {
	claim := func(dir string) (io.Closer, error) {
		if err := fs.MkdirAll(dir, 0o700); err != nil {
			return nil, prepareError(dir, err)
		}
		return fs.Lock(fs.PathJoin(dir, lockName))
	}
	return Options{fs: fs, claim: claim, memTable: 64 << 10}
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Floor == 0 {
		o.Floor = DefaultFloor
	}
	if o.fs == nil {
		o.fs = privateFS{vfs.Default}
	}
	if o.claim == nil {
		o.claim = o.claimDir
	}
	if o.memTable == 0 {
		o.memTable = 4 << 20
	}
	if o.piece == 0 {
		o.piece = movedAtOnce
	}
	if o.usage == nil {
		o.usage = o.fs.GetDiskUsage
	}
	if o.exit == nil {
		o.exit = os.Exit
	}
	return o
}

// claimDir makes the directory, where it may be made, and this process its owner (I10).
func (o Options) claimDir(dir string) (io.Closer, error) {
	if !o.ReadOnly {
		if err := disk.MakeDir(dir); err != nil {
			return nil, prepareError(dir, err)
		}
	}
	return lockDir(dir)
}

// pebbleOptions hold the memory of the database at about 17 MB whatever its size (I6), and the bytes written at three
// to four times the bytes saved. They were measured with a million objects: with a smaller memtable a full batch
// becomes a flush of its own, and a lower L0CompactionThreshold doubles the bytes written. Without cgo memtables are on
// Go's heap, so that each of their bytes counts twice in the process: six instead of four megabytes cost fourteen.
func (s *Store) pebbleOptions() *pebble.Options {
	o := &pebble.Options{
		FormatMajorVersion:          pebble.FormatValueSeparation,
		FS:                          vfs.OnDiskFull(s.opts.fs, s.space.wait),
		ReadOnly:                    s.opts.ReadOnly,
		Logger:                      &logger{dir: s.dir, to: s.opts.Logger, exit: s.opts.exit},
		CacheSize:                   2 << 20,
		MemTableSize:                s.opts.memTable,
		MemTableStopWritesThreshold: 2,
		MaxOpenFiles:                256,
		L0CompactionThreshold:       16,
		L0StopWritesThreshold:       32,
		LBaseMaxBytes:               64 << 20,
		BytesPerSync:                512 << 10,
		MaxManifestFileSize:         8 << 20,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 1 },
	}
	o.EventListener = &pebble.EventListener{DataCorruption: s.reportDamage}
	o.Experimental.CompactionScheduler = s.gate
	o.Experimental.EnableColumnarBlocks = func() bool { return true }
	o.Experimental.FileCacheShards = 1
	o.Experimental.ReadSamplingMultiplier = -1 // no compaction is ever started by reading
	o.TargetFileSizes[0] = 2 << 20
	for i := range o.Levels {
		o.Levels[i].BlockSize, o.Levels[i].IndexBlockSize = 16<<10, 64<<10
	}
	return o
}

// reportDamage makes the next write fail: what is damaged would otherwise be found again and again in the background,
// and never be told.
func (s *Store) reportDamage(info pebble.DataCorruptionInfo) {
	s.damage.CompareAndSwap(nil, &DamagedError{
		Op: "commit", Dir: s.dir, Err: fmt.Errorf("%s: %w", info.Path, info.Details),
	})
}

// logger passes on what Pebble says in the background.
type logger struct {
	dir  string
	to   *slog.Logger
	exit func(code int)
}

// Infof drops Pebble's diary.
func (l *logger) Infof(string, ...any) {}

// Errorf is an error that Pebble goes on after.
func (l *logger) Errorf(format string, args ...any) {
	l.to.Warn("the state's database reports a problem", "dir", l.dir, "error", fmt.Sprintf(format, args...))
}

// Fatalf ends the process: Pebble cannot go on, and promises nothing if the call returns. What was saved is safe, and
// the next start continues there.
func (l *logger) Fatalf(format string, args ...any) {
	l.to.Error("save state: the database cannot continue; what was saved is safe, and the next start continues there",
		"dir", l.dir, "error", fmt.Sprintf(format, args...))
	l.exit(1)
	runtime.Goexit()
}
