package deadletter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// minFree is how many bytes stay free on the volume: the saved state is mostly on the same one, and needs as much.
const minFree = 64 << 20

// FullError says that a letter was not kept because the volume is nearly full.
type FullError struct {
	Free, Need uint64 // bytes
}

func (e *FullError) Error() string {
	return fmt.Sprintf("only %d MiB free, %d MiB needed: free space or enlarge the volume; nothing is lost, the sink goes on when there is space", e.Free>>20, e.Need>>20)
}

// checkSpace returns a *FullError where the letter would not leave enough free.
func (d *Dir) checkSpace(size int) error {
	free, known, err := d.usage(d.Dir)
	if err != nil {
		return err
	}
	if need := d.floor + uint64(size); known && free < need {
		return &FullError{Free: free, Need: need}
	}
	return nil
}

// freeSpace is not known on some network file systems.
func freeSpace(dir string) (free uint64, known bool, err error) {
	var usage syscall.Statfs_t
	if err := syscall.Statfs(dir, &usage); err != nil {
		return 0, false, fmt.Errorf("read the volume's free space: %w", err)
	}
	return usage.Bavail * uint64(usage.Bsize), usage.Blocks > 0, nil
}

// writeFile makes a file of the parts durable. Others cannot read it: it holds an object's body.
func writeFile(path string, parts [][]byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	for i := 0; err == nil && i < len(parts); i++ {
		_, err = f.Write(parts[i])
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// makeDir creates the directory and its missing parents, and makes their names durable.
func makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
