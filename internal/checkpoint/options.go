package checkpoint

import (
	"io"
	"log/slog"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// defaultFloor is the free space, in bytes, below which nothing is saved any more.
const defaultFloor = 64 << 20

// Options say how a Store is opened. The zero value is for use by the pipeline.
type Options struct {
	// Logger is told what cannot be returned as an error; nil is slog.Default.
	Logger *slog.Logger
	// ReadOnly opens an existing state to look at it. The state must not be in use all the same.
	ReadOnly bool
	// Floor is the free space, in bytes, below which Open and Commit return a *disk.FullError; 0 is defaultFloor.
	Floor uint64
	// Journal is told of everything that is written from Open on; nil is nobody.
	Journal Journal

	// For tests; nil is the real one.
	fs       vfs.FS
	claim    func(dir string) (io.Closer, error) // makes the directory and locks it
	memTable uint64                              // bytes
	piece    int                                 // bytes that one write of a conversion has, about
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
		o.Floor = defaultFloor
	}
	if o.fs == nil {
		o.fs = privateFS{vfs.Default}
	}
	if o.claim == nil {
		o.claim = o.claimDir
	}
	if o.memTable == 0 {
		o.memTable = 2 << 20
	}
	if o.piece == 0 {
		o.piece = 1 << 20 // bounded, for a stream of any size (I6)
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
	if o.ReadOnly {
		return lockDir(dir)
	}
	return Reserve(dir)
}
