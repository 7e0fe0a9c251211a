package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math/bits"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kubecdc/kubecdc/internal/checkpoint/disk"
)

// The manifest consists of LevelDB's chunks: a checksum, a length, a type and data. No chunk crosses a block's border.
const (
	manifestBlock = 32 << 10
	chunkHeader   = 4 + 2 + 1
	lastChunkType = 4
)

// checkFiles refuses what Pebble would take for a new database: one that has lost the file that names its manifest.
// Pebble writes a log or a table only after that file.
func checkFiles(dir string, opts Options) error {
	found, err := pebble.Peek(dir, opts.fs)
	if err != nil {
		// Pebble has no error value for its own format.
		if strings.Contains(err.Error(), "unknown format major version") {
			return &FormatError{Dir: dir}
		}
		return openError(dir, err)
	}
	if found.Exists {
		return checkManifest(dir, found.ManifestFilename, opts.fs)
	}
	names, err := opts.fs.List(dir)
	if err != nil {
		return openError(dir, err)
	}
	for _, name := range names {
		if filepath.Ext(name) == ".sst" || isLog(name) {
			return &DamagedError{Op: "open", Dir: dir, Err: errors.New("the marker file of the manifest is missing")}
		}
	}
	if opts.ReadOnly {
		return fmt.Errorf("open state %s: %w", dir, ErrNoState)
	}
	return nil
}

// checkManifest reads the file that lists the tables. Pebble takes its first bad chunk for the end that a crash cut
// off, and so would forget tables whose logs are gone, without a word: batches from the middle would be missing.
func checkManifest(dir, name string, fs vfs.FS) error {
	file, err := fs.Open(name)
	if err != nil {
		return openError(dir, err)
	}
	data, err := io.ReadAll(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return openError(dir, err)
	}
	if at := damagedChunk(data); at >= 0 {
		return &DamagedError{Op: "open", Dir: dir, Err: fmt.Errorf("%s is wrong at byte %d", filepath.Base(name), at)}
	}
	return nil
}

// damagedChunk is where the first damaged chunk begins, -1 if there is none. A last chunk that is too short, and zeros
// at the end, are what a crash leaves, and no damage.
func damagedChunk(data []byte) int {
	for at := 0; at < len(data); {
		room := manifestBlock - at%manifestBlock
		if room < chunkHeader {
			at += room
			continue
		}
		rest := data[at:]
		if len(rest) < chunkHeader || len(bytes.Trim(rest, "\x00")) == 0 {
			return -1
		}
		end := chunkHeader + int(binary.LittleEndian.Uint16(rest[4:]))
		switch {
		case rest[6] == 0, rest[6] > lastChunkType, end > room:
			return at
		case end > len(rest):
			if hasChunk(rest) {
				return at
			}
			return -1
		case !validChunk(rest[:end]):
			return at
		}
		at += end
	}
	return -1
}

// validChunk says whether the bytes are one chunk. The checksum is a masked CRC-32C of type and data.
func validChunk(chunk []byte) bool {
	sum := crc32.Checksum(chunk[6:], crc32.MakeTable(crc32.Castagnoli))
	return binary.LittleEndian.Uint32(chunk) == bits.RotateLeft32(sum, 17)+0xa282ead8
}

// hasChunk says whether a chunk that seems cut off is complete, and its length wrong: then it ends with the file, or
// another chunk follows.
func hasChunk(rest []byte) bool {
	if validChunk(rest) {
		return true
	}
	for at := 1; at+chunkHeader <= len(rest); at++ {
		end := at + chunkHeader + int(binary.LittleEndian.Uint16(rest[at+4:]))
		if kind := rest[at+6]; kind > 0 && kind <= lastChunkType && end <= len(rest) && validChunk(rest[at:end]) {
			return true
		}
	}
	return false
}

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

// diary logs what Pebble reports in the background.
type diary struct {
	dir  string
	to   *slog.Logger
	exit func(code int)
}

// Infof drops what is of no interest.
func (l *diary) Infof(string, ...any) {}

// Errorf logs an error after which Pebble goes on.
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

// defaultFloor is the free space, in bytes, below which nothing is saved any more.
const defaultFloor = 64 << 20

// Options say how a Store is opened. The zero value is what the exporter uses.
type Options struct {
	// Logger gets what cannot be returned as an error; nil is slog.Default.
	Logger *slog.Logger
	// ReadOnly opens an existing state to look at it. Even so, the state must not be in use.
	ReadOnly bool
	// Floor is the free space, in bytes, below which Open and Commit return a *disk.FullError; 0 is defaultFloor.
	Floor uint64
	// Journal is told of everything that is written from Open on; it may be nil.
	Journal Journal

	// For tests; nil is the real one.
	fs       vfs.FS
	claim    func(dir string) (io.Closer, error) // makes the directory and locks it
	memTable uint64                              // bytes
	usage    func(path string) (vfs.DiskUsage, error)
	exit     func(code int)
}

// OnFS are options for a small state on another file system than the operating system's, with the locks and the free
// space of that: a simulation's, which crashes.
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
	o.Logger = cmp.Or(o.Logger, slog.Default())
	o.Floor = cmp.Or(o.Floor, defaultFloor)
	o.memTable = cmp.Or(o.memTable, 2<<20)
	if o.fs == nil {
		o.fs = privateFS{vfs.Default}
	}
	if o.claim == nil {
		o.claim = Reserve
		if o.ReadOnly {
			o.claim = func(dir string) (io.Closer, error) { return lockDir(dir) }
		}
	}
	if o.usage == nil {
		o.usage = o.fs.GetDiskUsage
	}
	if o.exit == nil {
		o.exit = os.Exit
	}
	return o
}

// gate lets no compaction run before the database is open: otherwise pebble.Open waits for those that its own recovery
// starts, for most of a second after some crashes. The scheduler needs no ticker, which is for a varying number of
// compactions.
type gate struct {
	*pebble.ConcurrencyLimitScheduler
	isOpen atomic.Bool
}

func newGate() *gate {
	return &gate{ConcurrencyLimitScheduler: pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest()}
}

// TrySchedule grants a compaction where none runs. A refused one waits.
func (g *gate) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if !g.isOpen.Load() {
		return false, nil
	}
	return g.ConcurrencyLimitScheduler.TrySchedule()
}

// open lets compactions run: one that waits begins where another one ends.
func (g *gate) open() {
	g.isOpen.Store(true)
	if granted, handle := g.TrySchedule(); granted {
		handle.Done()
	}
}

// space watches the free space of the volume. Pebble returns no error on a full disk: it waits, or ends the process. So
// a write is refused while Pebble still has room for what it does in the background.
type space struct {
	dir    string
	floor  uint64 // bytes
	usage  func(path string) (vfs.DiskUsage, error)
	logger *slog.Logger
	stop   chan struct{} // closed when nobody is to wait for space any more
}

// pollSpace is how often a wait for space looks again.
const pollSpace = time.Second

// check returns a *disk.FullError where less than the floor is free.
func (s *space) check(op string) error {
	usage, err := s.usage(s.dir)
	if err != nil {
		return fmt.Errorf("%s state %s: read the volume's free space: %w", op, s.dir, err)
	}
	outlook := "saving continues when there is space"
	if op == "open" {
		outlook = "start again when there is space"
	}
	err = disk.Usage{Free: usage.AvailBytes, Total: usage.TotalBytes}.Needs(s.floor, outlook)
	if err != nil {
		return fmt.Errorf("%s state %s: %w", op, s.dir, err)
	}
	return nil
}

// wait is called when a write of Pebble's finds the disk full, which means that somebody else has filled it after
// check. When wait returns, Pebble repeats the write once, and ends the process if a write to its log fails again.
func (s *space) wait() {
	if s.check("write") == nil {
		return
	}
	s.logger.Error("the disk is full, saving waits for space", "dir", s.dir)
	ticker := time.NewTicker(pollSpace)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
			if s.check("write") == nil {
				s.logger.Info("the disk has space again, saving continues", "dir", s.dir)
				return
			}
		}
	}
}
