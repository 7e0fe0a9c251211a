package file

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// openLocked opens the file at path as the only process that does (I10). The lock ends with the process.
func (l *Log) openLocked() (handle, error) {
	for {
		if err := l.regular(); err != nil {
			return nil, err
		}
		f, err := l.openFile(l.path)
		if err != nil {
			return nil, err
		}
		if err := l.lock(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		same, err := l.at(f)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if same {
			return f, nil
		}
		// Its owner renamed the file between our opening and our locking it, and let it go. What is at path now is
		// another file.
		_ = f.Close()
	}
}

// regular refuses what cannot be a log before opening does something to it, such as waiting for a reader.
func (l *Log) regular() error {
	info, err := os.Stat(l.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return unix.EISDIR
	case !info.Mode().IsRegular():
		return permanent("open file %s: not a regular file: name a file, or %q for standard output",
			l.options.Path, Stdout)
	}
	return nil
}

func (l *Log) lock(f handle) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return &sink.PermanentError{Err: &InUseError{l.options.Path}}
	case err != nil:
		return permanent("open file %s: lock: %w: put the file on a file system that has locks", l.options.Path, err)
	}
	return nil
}

func (l *Log) at(f handle) (bool, error) {
	ours, err := f.Stat()
	if err != nil {
		return false, err
	}
	here, err := os.Stat(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(ours, here), err
}
