package deadletter

import (
	"errors"
	"fmt"
	"path/filepath"
)

// Mend writes the letters anew of which due says by their heads that they may not stay as they are, after mend has
// changed each, which has value and object then. A crash leaves a letter as it was, or as it is to be. What cannot be
// mended is in the error, and the rest is mended. It is called before anything is kept, or sent again.
func (d *Dir) Mend(due func(head *Letter) bool, mend func(*Letter) error) error {
	var errs []error
	for _, dir := range []string{d.Dir, filepath.Join(d.Dir, claimedName)} {
		names, err := letterNames(dir)
		errs = append(errs, err)
		for _, name := range names {
			path := filepath.Join(dir, name)
			if err := d.mend(path, due, mend); err != nil {
				errs = append(errs, fmt.Errorf("mend dead letter %s: %w", path, err))
			}
		}
	}
	return errors.Join(errs...)
}

func (d *Dir) mend(path string, due func(*Letter) bool, mend func(*Letter) error) error {
	head, err := readFile(path, false)
	if err != nil || !due(head) {
		return err
	}
	l, err := readFile(path, true)
	if err == nil {
		err = mend(l)
	}
	if err == nil {
		err = d.write(l, path)
	}
	if name, inside := filepath.Rel(d.Dir, path); err == nil && inside == nil {
		d.changed(name)
	}
	return err
}
