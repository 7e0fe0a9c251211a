package file

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// Check says why the file could not be opened for writing, and changes nothing: a file that is missing stays missing.
// A file that is there is locked for the moment of the look. The note is never used.
func (l *Log) Check(context.Context) (note string, err error) {
	l.resolve(l.options.Path)
	err = l.writable()
	if errors.Is(err, os.ErrNotExist) {
		err = l.creatable()
	}
	switch {
	case err == nil:
		return "", nil
	case passes(err): // by itself, perhaps
		return "", sink.Permanent("check %s: %w: check the disk and the path", l.options.noun(), cause(err))
	}
	return "", l.explain("check", err)
}

// writable looks at a file that exists.
func (l *Log) writable() error {
	if _, err := os.Stat(l.path); err != nil {
		return err
	}
	if err := l.regular(); err != nil {
		return err
	}
	if err := unix.Access(l.path, unix.R_OK|unix.W_OK); err != nil {
		return err
	}
	if l.options.MaxBytes > 0 { // a rotation renames it
		if err := unix.Access(filepath.Dir(l.path), unix.W_OK|unix.X_OK); err != nil {
			return err
		}
	}
	f, err := os.Open(l.path)
	if err != nil {
		return err
	}
	return errors.Join(l.lock(f), f.Close())
}

// creatable looks at the directory of a file that does not exist.
func (l *Log) creatable() error {
	dir := filepath.Dir(l.path)
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return unix.ENOTDIR
	}
	return unix.Access(dir, unix.R_OK|unix.W_OK|unix.X_OK)
}
