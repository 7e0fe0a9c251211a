package checkpoint

import (
	"fmt"
	"strconv"

	"github.com/cockroachdb/pebble/v2"
)

// formatVersion is the form of keys and values that this version writes.
const formatVersion = 1

// checkFormat reads the format, and writes it into a new database.
func (s *Store) checkFormat() error {
	value, found, err := s.get(formatKey())
	if err != nil {
		return err
	}
	if !found {
		return s.startFormat()
	}
	format, err := strconv.Atoi(string(value))
	if err != nil {
		return s.badValue("the format", err)
	}
	if format > formatVersion {
		return &NewerError{Dir: s.dir, Format: format, Known: formatVersion}
	}
	return nil
}

// startFormat writes the format into an empty database: a new one, or one whose first start was cut short.
func (s *Store) startFormat() error {
	iterator, err := s.db.NewIter(nil)
	if err != nil {
		return s.failed("open", err)
	}
	empty := !iterator.First()
	if err := iterator.Close(); err != nil {
		return s.failed("open", err)
	}
	if !empty {
		return fmt.Errorf("open state %s: it holds another program's database: choose another state.dir", s.dir)
	}
	if s.opts.ReadOnly {
		return fmt.Errorf("open state %s: %w", s.dir, ErrNoState)
	}
	if err := s.db.Set(formatKey(), []byte(strconv.Itoa(formatVersion)), pebble.Sync); err != nil {
		return s.failed("open", err)
	}
	return nil
}
