package checkpoint

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// privateFS makes files that nobody but their owner may read. Pebble's own are everybody's, and a umask would be the
// whole process's.
type privateFS struct{ vfs.FS }

// Create is vfs.FS's.
func (f privateFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := makePrivate(name); err != nil {
		return nil, err
	}
	return f.FS.OpenReadWrite(name, category)
}

// OpenReadWrite is vfs.FS's.
func (f privateFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := makePrivate(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return f.FS.OpenReadWrite(name, category, opts...)
}

// Lock is vfs.FS's. A file that is there is not opened before: to close it would end this process's lock (POSIX fcntl).
func (f privateFS) Lock(name string) (io.Closer, error) {
	if err := makePrivate(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return f.FS.Lock(name)
}

// MkdirAll is vfs.FS's.
func (f privateFS) MkdirAll(dir string, _ os.FileMode) error { return f.FS.MkdirAll(dir, privateDir) }

// Unwrap is vfs.FS's.
func (f privateFS) Unwrap() vfs.FS { return f.FS }

// makePrivate makes an empty file; one that is there is fs.ErrExist.
func makePrivate(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, privateFile)
	if err != nil {
		return err
	}
	return f.Close()
}

// mendModes takes from others what an earlier version, a copy or a mount let them do with the state's files. Files that
// are not the state's stay as they are: a sink's log may lie beside it. What may not be changed is told, and stops
// nothing.
func mendModes(dir string, logger *slog.Logger) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return openError(dir, err)
	}
	var failed []error
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || !isOurs(entry.Name()) || info.Mode().Perm()&^privateFile == 0 {
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
