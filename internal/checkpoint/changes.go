package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Changes are what writes have changed, in their order, as a log of the state has it: for each a kind, the key, and a
// value or where a range ends, each with its length in front. The zero value is none.
type Changes []byte

// The kinds of changes.
const (
	changeSet    = 1
	changeRemove = 2
	changeClear  = 3 // of a range
)

// Set appends that the key has the value.
func (c Changes) Set(key, value []byte) Changes {
	return Changes(appendText(appendText(append(c, changeSet), key), value))
}

// Remove appends that the key is gone.
func (c Changes) Remove(key []byte) Changes { return Changes(appendText(append(c, changeRemove), key)) }

// Clear appends that all keys from one on are gone that are below the other.
func (c Changes) Clear(from, to []byte) Changes {
	return Changes(appendText(appendText(append(c, changeClear), from), to))
}

// one is one of the changes. Its key and value are parts of them.
type one struct {
	kind       byte
	key, value []byte
}

// next cuts the first change off.
func (c Changes) next() (first one, rest Changes, err error) {
	first.kind, rest = c[0], c[1:]
	if first.kind < changeSet || first.kind > changeClear {
		return first, nil, fmt.Errorf("a change of kind %d: %w", first.kind, errValue)
	}
	if first.key, rest, err = cutBytes(rest); err == nil && first.kind != changeRemove {
		first.value, rest, err = cutBytes(rest)
	}
	return first, rest, err
}

// each visits the changes in their order.
func (c Changes) each(visit func(*one) error) error {
	for len(c) > 0 {
		first, rest, err := c.next()
		if err == nil {
			err = visit(&first)
		}
		if err != nil {
			return err
		}
		c = rest
	}
	return nil
}

// Fold applies the changes to a map, as a test or a tool has it.
func (c Changes) Fold(into map[string]string) error {
	return c.each(func(o *one) error {
		switch o.kind {
		case changeSet:
			into[string(o.key)] = string(o.value)
		case changeRemove:
			delete(into, string(o.key))
		default:
			for key := range into {
				if key >= string(o.key) && key < string(o.value) {
					delete(into, key)
				}
			}
		}
		return nil
	})
}

func cutBytes(from []byte) (part, rest []byte, err error) {
	n, width := binary.Uvarint(from)
	if width <= 0 || n > uint64(len(from)-width) {
		return nil, nil, errValue
	}
	from = from[width:]
	return from[:n:n], from[n:], nil
}

// changesOf are those of a batch that others may know: nothing of what is on this disk alone for a sink, and
// of what the state notes about its log.
func changesOf(b *pebble.Batch) (c Changes, err error) {
	err = eachOf(b, func(kind pebble.InternalKeyKind, key, value []byte) error {
		switch {
		case !isLogged(key):
		case kind == pebble.InternalKeyKindSet:
			c = c.Set(key, value)
		case kind == pebble.InternalKeyKindDelete:
			c = c.Remove(key)
		case kind == pebble.InternalKeyKindRangeDelete:
			c = c.Clear(key, value)
		default:
			return fmt.Errorf("a change of kind %s: %w", kind, errValue)
		}
		return nil
	})
	return c, err
}

// isLogged says whether the log of the state has the key.
func isLogged(key []byte) bool {
	switch key[0] {
	case tableSpool, tableSpooled, tableDiskRow, tableDiskPlace, tableLogged, tableFormat, tableRestoring:
		return false
	}
	return true
}

// FileKey is the key of a file that belongs to the state beside the database: a dead letter. Its value is the file.
func FileKey(name string) []byte { return append([]byte{tableFile}, name...) }

// FileRange is where the keys of files begin and end.
func FileRange() (from, to []byte) { return []byte{tableFile}, []byte{tableFile + 1} }

// isFile says whether the key is that of a file, and which.
func isFile(key []byte) (name string, is bool) {
	rest, is := bytes.CutPrefix(key, []byte{tableFile})
	return string(rest), is
}

// eachOf visits what the batch changes. What the visit adds to it is not visited.
func eachOf(b *pebble.Batch, visit func(kind pebble.InternalKeyKind, key, value []byte) error) error {
	for r := b.Reader(); ; {
		kind, key, value, more, err := r.Next()
		if err != nil || !more {
			return err
		}
		if err := visit(kind, key, value); err != nil {
			return err
		}
	}
}
