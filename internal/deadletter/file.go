package deadletter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// minFree is how many bytes stay free on the volume: the saved state is mostly on the same one, and needs as much.
const minFree = 64 << 20

// checkSpace returns a *disk.FullError where the letter would not leave enough free.
func (d *Dir) checkSpace(size int) error {
	usage, err := d.usage(d.Dir)
	if err != nil {
		return fmt.Errorf("read the volume's free space: %w", err)
	}
	return usage.Needs(d.floor+uint64(size), "the sink continues when there is space")
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
