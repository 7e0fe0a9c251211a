package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kubecdc/kubecdc/internal/checkpoint/disk"
)

// Discard removes the state's files, even if they are damaged or of a newer version, so that Open refuses them. The
// directory and files of others in it stay. It returns an *InUseError while the state is open.
//
// An interrupted Discard leaves a state that Open refuses, never a part that it accepts.
func Discard(dir string) error {
	lock, err := lockDir(dir)
	if err != nil {
		return err
	}
	if err := errors.Join(removeFiles(vfs.Default, dir), lock.Close()); err != nil {
		return fmt.Errorf("reset state %s: %w", dir, err)
	}
	return nil
}

// removeFiles removes the marker files first, so that what is left is never taken for a state.
func removeFiles(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, markers := range []bool{true, false} {
		for _, name := range names {
			if strings.HasPrefix(name, "marker.") != markers || !ofDatabase(name) {
				continue
			}
			if err := fs.Remove(fs.PathJoin(dir, name)); err != nil {
				return err
			}
		}
		if err := syncDir(fs, dir); err != nil {
			return err
		}
	}
	return nil
}

func syncDir(fs vfs.FS, dir string) error {
	opened, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(opened.Sync(), opened.Close())
}

// lockDir makes this process the directory's owner until the file is closed, or the process ends in any way (I10).
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, privateFile)
	if err != nil {
		return nil, prepareError(dir, err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		pid := readPID(f)
		return nil, errors.Join(&InUseError{Dir: dir, PID: pid}, f.Close())
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open state %s: lock %s: %w", dir, lockName, err), f.Close())
	}
	return f, nil
}

// Reserve makes the directory if it is missing, and makes this process its owner until the closer is closed.
func Reserve(dir string) (io.Closer, error) {
	if err := disk.MakeDir(dir); err != nil {
		return nil, prepareError(dir, err)
	}
	return lockDir(dir)
}

// Owner is the process that has the state in the directory open; running is false if there is none. The process id is 0
// if it is not known. Owner changes nothing.
func Owner(dir string) (pid int, running bool, err error) {
	f, err := os.Open(filepath.Join(dir, lockName))
	if errors.Is(err, os.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, prepareError(dir, err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return readPID(f), true, f.Close()
	}
	if err != nil {
		err = fmt.Errorf("open state %s: lock %s: %w", dir, lockName, err)
	}
	return 0, false, errors.Join(err, f.Close())
}

// readPID is the owner's process id, 0 if it has not written it yet.
func readPID(f *os.File) (pid int) {
	if _, err := fmt.Fscan(f, &pid); err != nil {
		return 0
	}
	return pid
}

// privateFS makes files that only their owner may read. Pebble's own are readable by all, and a umask would apply to
// the whole process.
type privateFS struct{ vfs.FS }

// Create implements vfs.FS.
func (f privateFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := makePrivate(name); err != nil {
		return nil, err
	}
	return f.FS.OpenReadWrite(name, category)
}

// OpenReadWrite implements vfs.FS.
func (f privateFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := makePrivate(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return f.FS.OpenReadWrite(name, category, opts...)
}

// Lock implements vfs.FS. It does not open a file that exists: to close it would end this process's lock (POSIX fcntl).
func (f privateFS) Lock(name string) (io.Closer, error) {
	if err := makePrivate(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return f.FS.Lock(name)
}

// Unwrap implements vfs.FS.
func (f privateFS) Unwrap() vfs.FS { return f.FS }

// makePrivate makes an empty file; its error is fs.ErrExist if there is one.
func makePrivate(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, privateFile)
	if err != nil {
		return err
	}
	return f.Close()
}

// mendModes takes away the rights on the state's files that an earlier version, a copy or a mount has given to others.
// Other files stay as they are: a sink's log may be beside the state. Failures are logged, and stop nothing.
func mendModes(dir string, logger *slog.Logger) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return openError(dir, err)
	}
	var failed []error
	for _, entry := range entries {
		info, err := entry.Info()
		isOurs := ofDatabase(entry.Name()) || entry.Name() == lockName
		if err != nil || !info.Mode().IsRegular() || !isOurs || info.Mode().Perm()&^privateFile == 0 {
			continue
		}
		if err := os.Chmod(filepath.Join(dir, entry.Name()), privateFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 {
		logger.Warn("other users can read files of the state: let the exporter's user own them, or make the directory private with chmod 700",
			"dir", dir, "files", len(failed), "error", failed[0])
	}
	return nil
}

// privateFile is the mode of the state's files: they hold objects, and others may be able to read the directory (I9).
const privateFile = 0o600

// lockName is the file that the owner of a state directory holds locked. Pebble's own lock does not say who holds it.
const lockName = "LOCK.exporter"

// isLog tells Pebble's logs, whose names are numbers, from those of other programs.
func isLog(name string) bool {
	number, found := strings.CutSuffix(name, ".log")
	return found && number != "" && strings.Trim(number, "0123456789") == ""
}

// ofDatabase says whether the file's name is one that Pebble gives.
func ofDatabase(name string) bool {
	for _, pattern := range []string{"LOCK", "marker.*", "MANIFEST-*", "OPTIONS-*", "*.blob", "*.dbtmp", "CURRENT.*", "*.sst"} {
		if ok, _ := filepath.Match(pattern, name); ok { // the patterns are well-formed
			return true
		}
	}
	return isLog(name)
}

// ErrNoState says that a directory which was opened read-only holds no state.
var ErrNoState = errors.New("there is no state: check the path, or start the exporter once")

// ErrRestoring says that a directory holds a copy of a log, which is not a state yet.
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
	return fmt.Sprintf("open state %s: in use by %s: stop it, or give this exporter a state.dir and sinks of its own", e.Dir, process)
}

// FormatError says that the state was written in a format that this version does not read.
type FormatError struct {
	Dir    string
	Format int // 0 where not even that can be read
}

func (e *FormatError) Error() string {
	writer, format, remedy := "a newer", "an unknown format", "or another state.dir"
	if e.Format != 0 {
		format = fmt.Sprintf("format %d", e.Format)
	}
	if e.Format != 0 && e.Format < formatVersion {
		writer, remedy = "an earlier", "or give the state up with: exporter checkpoint reset --state-dir "+e.Dir
	}
	return fmt.Sprintf("open state %s: written by %s version of exporter (%s, this one knows %d): use that version, %s",
		e.Dir, writer, format, formatVersion, remedy)
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

// openError explains why the database in the directory could not be opened. An error of the operating system is the
// machine's, except for a missing file. Everything else means that the files are damaged.
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
