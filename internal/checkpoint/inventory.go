package checkpoint

import (
	"iter"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kubecdc/kubecdc/internal/change"
)

// scanChunk is how many entries a scan reads at once. Between two chunks it holds no iterator, which would keep files
// and memtables alive for as long as the reader takes (I6).
const scanChunk = 512

// Lookup is the inventory's entry of one object, false where the sinks have no such object.
func (s *Store) Lookup(stream string, key change.Key) (change.Entry, bool, error) {
	value, found, err := s.get(appendKey(inventoryPrefix(stream), key))
	if err != nil || !found {
		return change.Entry{}, false, err
	}
	uid, version, err := parseEntry(value)
	if err != nil {
		return change.Entry{}, false, s.badValue("object "+key.String()+" of "+stream, err)
	}
	return change.Entry{Key: key, UID: uid, ResourceVersion: version}, true, nil
}

// Scan yields the stream's entries as of the moment the loop begins, in the bytewise order of their joined keys. After
// an error it yields nothing more. The loop may take its time, may write, and may break.
func (s *Store) Scan(stream string) iter.Seq2[change.Entry, error] {
	return func(yield func(change.Entry, error) bool) {
		snapshot := s.db.NewSnapshot()
		defer func() { _ = snapshot.Close() }() // it never fails
		prefix := inventoryPrefix(stream)
		chunk := make([]change.Entry, 0, scanChunk)
		for from := prefix; from != nil; {
			var err error
			if chunk, from, err = s.readChunk(snapshot, prefix, from, chunk[:0]); err != nil {
				yield(change.Entry{}, err)
				return
			}
			for _, entry := range chunk {
				if !yield(entry, nil) {
					return
				}
			}
		}
	}
}

// readChunk appends entries from the key on until dst is full, and returns the key to go on from, nil at the end.
func (s *Store) readChunk(view pebble.Reader, prefix, from []byte, dst []change.Entry) ([]change.Entry, []byte, error) {
	iterator, err := view.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: after(prefix)})
	if err != nil {
		return dst, nil, s.failed("read", err)
	}
	var next []byte
	var bad error
	for iterator.First(); iterator.Valid() && bad == nil; iterator.Next() {
		if len(dst) == cap(dst) {
			next = append([]byte{}, iterator.Key()...)
			break
		}
		var entry change.Entry
		entry.Key = change.ParseKey(string(iterator.Key()[len(prefix):]))
		entry.UID, entry.ResourceVersion, bad = parseEntry(iterator.Value())
		dst = append(dst, entry)
	}
	if err := iterator.Close(); err != nil {
		return dst, nil, s.failed("read", err)
	}
	if bad != nil {
		return dst, nil, s.badValue("object "+dst[len(dst)-1].Key.String(), bad)
	}
	return dst, next, nil
}

// Count is the number of objects in the stream's inventory. It reads all of them.
func (s *Store) Count(stream string) (int, error) {
	n := 0
	err := s.each(inventoryPrefix(stream), func(_, _ []byte) error { n++; return nil })
	return n, err
}

// Streams are the names of the streams that the state knows anything of, sorted.
func (s *Store) Streams() ([]string, error) {
	positions, err := s.Positions()
	if err != nil {
		return nil, err
	}
	iterator, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{tableInventory}, UpperBound: []byte{tableInventory + 1}})
	if err != nil {
		return nil, s.failed("read", err)
	}
	for valid := iterator.First(); valid; {
		stream, ok := inventoryStream(iterator.Key())
		if !ok {
			_ = iterator.Close() // the value is the worse news
			return nil, s.badValue("the inventory", errValue)
		}
		if _, known := positions[stream]; !known {
			positions[stream] = change.Position{}
		}
		valid = iterator.SeekGE(after(inventoryPrefix(stream)))
	}
	if err := iterator.Close(); err != nil {
		return nil, s.failed("read", err)
	}
	return slices.Sorted(maps.Keys(positions)), nil
}
