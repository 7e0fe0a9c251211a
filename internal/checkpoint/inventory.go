package checkpoint

import (
	"bytes"
	"iter"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kubecdc/kubecdc/internal/change"
)

// scanChunk is how many entries a scan reads at once. Between two chunks it holds no iterator, which would keep files
// and memtables alive for as long as the reader takes (I6).
const scanChunk = 512

// inventory is the uid and version of every object, as the sinks were given it.
type inventory struct{ *database }

// Lookup is the inventory's entry of one object, false where the sinks have no such object.
func (i inventory) Lookup(stream string, key change.Key) (change.Entry, bool, error) {
	value, found, err := i.get(appendKey(inventoryPrefix(stream), key))
	if err != nil || !found {
		return change.Entry{}, false, err
	}
	uid, version, err := parseEntry(value)
	if err != nil {
		return change.Entry{}, false, i.badValue("object "+key.String()+" of "+stream, err)
	}
	return change.Entry{Key: key, UID: uid, ResourceVersion: version}, true, nil
}

// Filter says which entries of an inventory are wanted; the zero value wants all.
type Filter struct {
	// Namespace, where not "", is a range of keys: nothing else is read.
	Namespace string
	// UID, where not "", is compared with every entry in the range, at a tenth of a second for a million of them. No
	// index by uid is kept: its upkeep would nearly double the cost of every commit, for a question that is rarely
	// asked (see DESIGN.md).
	UID string

	behind string // a joined key, where not "": a range, too
}

// Scan yields the stream's entries whose joined keys are after the given one, "" for all, as of the moment the loop
// begins, in the bytewise order of those keys. After an error it yields nothing more. The loop may take its time, may
// write, and may break.
func (i inventory) Scan(stream, behind string) iter.Seq2[change.Entry, error] {
	return i.Select(stream, Filter{behind: behind})
}

// Select yields those entries of Scan that the filter wants.
func (i inventory) Select(stream string, filter Filter) iter.Seq2[change.Entry, error] {
	return func(yield func(change.Entry, error) bool) {
		snapshot := i.db.NewSnapshot()
		defer func() { _ = snapshot.Close() }() // it never fails
		part := newRange(stream, filter)
		chunk := make([]change.Entry, 0, scanChunk)
		for part.from != nil {
			var err error
			if chunk, err = i.readChunk(snapshot, part, chunk[:0]); err != nil {
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

// keyRange is what is still to be read of a scan.
type keyRange struct {
	prefix   int    // the length of what comes before the joined key
	from, to []byte // from is nil at the end
	uid      []byte // the beginning of the values that are wanted; nil is all
}

func newRange(stream string, filter Filter) *keyRange {
	from := inventoryPrefix(stream)
	r := &keyRange{prefix: len(from)}
	if filter.Namespace != "" {
		from = append(append(from, filter.Namespace...), '/')
	}
	r.from, r.to = from, after(from)
	if filter.behind != "" {
		r.from = append(append(slices.Clone(from), filter.behind...), 0)
	}
	if filter.UID != "" {
		r.uid = appendEntry(nil, filter.UID, "")
	}
	return r
}

// wants compares a value's uid without making a text of it.
func (r *keyRange) wants(value []byte) bool {
	return r.uid == nil ||
		len(value) > 0 && value[0]&uidBinary == r.uid[0]&uidBinary && bytes.HasPrefix(value[1:], r.uid[1:])
}

// readChunk appends wanted entries of the range until dst is full, and takes what it has read from the range.
func (i inventory) readChunk(view pebble.Reader, part *keyRange, dst []change.Entry) ([]change.Entry, error) {
	iterator, err := view.NewIter(&pebble.IterOptions{LowerBound: part.from, UpperBound: part.to})
	if err != nil {
		return dst, i.failed("read", err)
	}
	part.from = nil
	var bad error
	for iterator.First(); iterator.Valid() && bad == nil; iterator.Next() {
		if !part.wants(iterator.Value()) {
			continue
		}
		if len(dst) == cap(dst) {
			part.from = bytes.Clone(iterator.Key())
			break
		}
		var entry change.Entry
		entry.Key = change.ParseKey(string(iterator.Key()[part.prefix:]))
		entry.UID, entry.ResourceVersion, bad = parseEntry(iterator.Value())
		dst = append(dst, entry)
	}
	if err := iterator.Close(); err != nil {
		return dst, i.failed("read", err)
	}
	if bad != nil {
		return dst, i.badValue("object "+dst[len(dst)-1].Key.String(), bad)
	}
	return dst, nil
}

// Count is the number of objects in the stream's inventory. It reads all of them.
func (i inventory) Count(stream string) (int, error) {
	n := 0
	err := i.each(inventoryPrefix(stream), func(_, _ []byte) error { n++; return nil })
	return n, err
}
