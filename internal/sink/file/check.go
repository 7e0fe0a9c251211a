package file

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Check says why the file could not be opened for writing, and changes nothing: a file that is missing stays missing.
// A file that is there is locked for the moment of the look. The note is never used.
func (l *Log) Check(context.Context) (note string, err error) {
	l.resolve(l.options.Path)
	err = l.writable()
	if errors.Is(err, os.ErrNotExist) {
		err = l.creatable()
	}
	if err != nil {
		return "", l.explainAny("check", err)
	}
	return "", nil
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

// explainAny is explain also for errors that may pass by themselves.
func (a attempts) explainAny(verb string, err error) error {
	if passes(err) {
		return permanent("%s %s: %w: check the disk and the path", verb, a.options.noun(), cause(err))
	}
	return a.explain(verb, err)
}
