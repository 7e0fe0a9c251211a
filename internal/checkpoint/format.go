package checkpoint

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/cockroachdb/pebble/v2"
)

// checkFormat reads the format, and writes it into a new database.
func (d *database) checkFormat() error {
	value, found, err := d.get(formatKey())
	if err != nil {
		return err
	}
	if !found {
		if cut, err := d.holds(restoringKey()); cut || err != nil {
			return errors.Join(err, ErrRestoring)
		}
		return d.startFormat()
	}
	format, err := strconv.Atoi(string(value))
	if err != nil {
		return d.badValue("the format", err)
	}
	if d.format = format; format > formatVersion {
		return &NewerError{Dir: d.dir, Format: format, Known: formatVersion}
	}
	return nil
}

// startFormat writes the format into an empty database: a new one, or one whose first start was cut short.
func (d *database) startFormat() error {
	iterator, err := d.db.NewIter(nil)
	if err != nil {
		return d.failed("open", err)
	}
	empty := !iterator.First()
	if err := iterator.Close(); err != nil {
		return d.failed("open", err)
	}
	if !empty {
		return fmt.Errorf("open state %s: it holds another program's database: choose another state.dir", d.dir)
	}
	if d.opts.ReadOnly {
		return fmt.Errorf("open state %s: %w", d.dir, ErrNoState)
	}
	if err := d.db.Set(formatKey(), []byte(strconv.Itoa(formatVersion)), pebble.Sync); err != nil {
		return d.failed("open", err)
	}
	d.format = formatVersion
	return nil
}
