package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kubecdc/kubecdc/internal/disk"
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
	if err := errors.Join(removeFiles(dir), lock.Close()); err != nil {
		return fmt.Errorf("reset state %s: %w", dir, err)
	}
	return nil
}

// removeFiles removes the marker files first, so that what is left is never taken for a state.
func removeFiles(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, markers := range []bool{true, false} {
		for _, entry := range entries {
			if strings.HasPrefix(entry.Name(), "marker.") != markers || !ofDatabase(entry.Name()) {
				continue
			}
			if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
		if err := disk.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}
