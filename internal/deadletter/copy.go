package deadletter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kubecdc/kubecdc/internal/disk"
)

// Files are the names of the letters' files below the directory, for who keeps a copy.
func (d *Dir) Files() ([]string, error) {
	names, err := letterNames(d.Dir)
	claimed, claimedErr := letterNames(filepath.Join(d.Dir, claimedName))
	for _, name := range claimed {
		names = append(names, filepath.Join(claimedName, name))
	}
	return names, errors.Join(err, claimedErr)
}

// Read is the file of the name, nil where it is gone.
func (d *Dir) Read(name string) ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(d.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// Remove removes a file. Its durability is that of what is put back there.
func (d *Dir) Remove(name string) error {
	if err := remove(filepath.Join(d.Dir, name)); err != nil {
		return fmt.Errorf("remove dead letter %s in %s: %w", name, d.Dir, err)
	}
	return nil
}

// PutBack makes a file durable that was copied. One that is there already stays as it is.
func (d *Dir) PutBack(name string, content []byte) error {
	path := filepath.Join(d.Dir, name)
	if !filepath.IsLocal(name) {
		return fmt.Errorf("restore dead letter %q: its name leads out of %s", name, d.Dir)
	}
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	err := disk.MakeDir(filepath.Dir(path))
	if err == nil {
		err = writeFile(path+unfinished, [][]byte{content})
	}
	if err == nil {
		err = os.Rename(path+unfinished, path)
	}
	if err == nil {
		err = disk.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("restore dead letter %s in %s: %w", name, d.Dir, err)
	}
	return nil
}
