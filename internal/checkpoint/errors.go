package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
)

// ErrNoState says that a directory which was opened read-only holds no state.
var ErrNoState = errors.New("there is no state: check the path, or start the exporter once")

// ErrRestoring says that a directory holds what was read from a log: the beginning of a state, or a standby's copy.
var ErrRestoring = errors.New("it holds what was read from a log, which is no state of its own: start the exporter again, show the log with exporter checkpoint show --log, or restore it with exporter checkpoint restore")

// InUseError says that another process has the state open (I10).
type InUseError struct {
	Dir string
	PID int // 0 where it is not known
}

func (e *InUseError) Error() string {
	process := "another process"
	if e.PID != 0 {
		process = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("open state %s: in use by %s: stop it, or choose another state.dir", e.Dir, process)
}

// NewerError says that the state was written in a format that this version does not know.
type NewerError struct {
	Dir    string
	Format int // 0 where not even that can be read
	Known  int
}

func (e *NewerError) Error() string {
	format := "an unknown format"
	if e.Format != 0 {
		format = fmt.Sprintf("format %d", e.Format)
	}
	return fmt.Sprintf("open state %s: written by a newer version of exporter (%s, this one knows %d): use that version, or another state.dir",
		e.Dir, format, e.Known)
}

// DamagedError says that the state's files are not as they were written. They are left as they are.
type DamagedError struct {
	Op  string // "open", "read", "commit"
	Dir string
	Err error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s state %s: damaged: %v: restore the directory from a copy, or give it up with: exporter checkpoint reset --state-dir %s",
		e.Op, e.Dir, e.Err, e.Dir)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// prepareError explains why the directory or its lock file could not be made.
func prepareError(dir string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("open state %s: not a directory: choose another state.dir", dir)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("open state %s: not writable by user %d: change its owner or mount (in Kubernetes securityContext.fsGroup), or choose another state.dir: %w",
			dir, os.Getuid(), err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("open state %s: %w", dir, ErrNoState)
	}
	return fmt.Errorf("open state %s: %w", dir, err)
}

// openError explains why the database in the directory could not be opened. An error of the operating system is one of
// the machine, and everything else means that the files are not what they should be; so does a file that is missing.
func openError(dir string, err error) error {
	var errno syscall.Errno
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return prepareError(dir, err)
	case pebble.IsCorruptionError(err), !errors.As(err, &errno), errno == syscall.ENOENT:
		return &DamagedError{Op: "open", Dir: dir, Err: err}
	}
	return fmt.Errorf("open state %s: %w", dir, err)
}
