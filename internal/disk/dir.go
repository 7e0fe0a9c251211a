package disk

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// MakeDir creates the directory and its missing parents, for their owner alone, and makes the names durable: what is
// synced into a directory which a power failure forgets is lost.
func MakeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := MakeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); errors.Is(err, os.ErrExist) {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return &os.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
		}
	} else if err != nil {
		return err
	}
	return SyncDir(parent)
}

// SyncDir makes the names in a directory durable, on file systems that can.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// Creatable says why MakeDir could not create the directory, and creates nothing.
func Creatable(dir string) error {
	info, err := os.Stat(dir)
	switch parent := filepath.Dir(dir); {
	case errors.Is(err, os.ErrNotExist) && parent != dir:
		return Creatable(parent)
	case err != nil:
		return err
	case !info.IsDir():
		return &os.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return &os.PathError{Op: "mkdir", Path: dir, Err: err}
	}
	return nil
}
