package disk

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
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
