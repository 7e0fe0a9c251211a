package checkpoint

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Discard removes the state's files, also where they are damaged or of a newer version and Open refuses them. The
// directory and files of others in it stay. It returns an *InUseError while the state is open.
//
// A Discard that is cut short leaves a state that Open refuses, never a part of one.
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
