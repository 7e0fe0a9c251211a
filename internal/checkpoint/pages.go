package checkpoint

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"
)

// Page reads about so many bytes of the state from the key on, as changes that make another state have the same
// between the key and the next one, and returns that, nil at the end. It is the state as of one moment, at which begin
// is called: no write comes in between. Where begin says no, nothing is read. A page that begins nowhere is the first.
func (d *database) Page(from []byte, size int, begin func() bool) (page Changes, next []byte, err error) {
	if len(from) == 0 {
		from = []byte{tableRestoring + 1}
	}
	end := []byte{tableFile}
	iterator, err := d.iterate(from, end, begin)
	if err != nil || iterator == nil {
		return nil, from, err
	}
	var rows Changes
	for valid := iterator.First(); valid; {
		if !isLogged(iterator.Key()) {
			valid = iterator.SeekGE([]byte{iterator.Key()[0] + 1})
			continue
		}
		if len(rows) >= size {
			next = bytes.Clone(iterator.Key())
			break
		}
		rows = rows.Set(iterator.Key(), iterator.Value())
		valid = iterator.Next()
	}
	if err := iterator.Close(); err != nil {
		return nil, nil, d.failed("read", err)
	}
	if next != nil {
		end = next
	}
	return append(Changes(nil).Clear(from, end), rows...), next, nil
}

// iterate begins to read a range while nobody writes.
func (d *database) iterate(from, to []byte, begin func() bool) (*pebble.Iterator, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || !begin() {
		return nil, nil
	}
	iterator, err := d.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return nil, d.failed("read", err)
	}
	return iterator, nil
}
