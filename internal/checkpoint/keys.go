package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/uuid"

	"github.com/kubecdc/kubecdc/internal/fifo"
)

// Journal is told of each write, in order, once it is durable. It returns at once and calls nothing back.
type Journal interface {
	// Record is called with what one write has changed. The journal owns the changes from then on.
	Record(changes Changes)
}

// Changes are what writes have changed, in order, as in a log of the state. Each is a kind, a key, and a value or the
// end of a range, the latter two with their lengths in front. The zero value is none.
type Changes []byte

// The kinds of changes.
const (
	changeSet    = 1
	changeRemove = 2
	changeClear  = 3 // removes a range
)

// Set appends that the key has the value.
func (c Changes) Set(key, value []byte) Changes {
	return Changes(appendText(appendText(append(c, changeSet), key), value))
}

// Remove appends that the key is gone.
func (c Changes) Remove(key []byte) Changes { return Changes(appendText(append(c, changeRemove), key)) }

// Clear appends that all keys from one up to another, without that, are gone.
func (c Changes) Clear(from, to []byte) Changes {
	return Changes(appendText(appendText(append(c, changeClear), from), to))
}

// keyChange is one of the Changes. Its key and value are parts of their memory.
type keyChange struct {
	kind       byte
	key, value []byte
}

// each visits the changes in their order.
func (c Changes) each(visit func(*keyChange) error) error {
	for r := (Reader{Rest: c}); len(r.Rest) > 0; {
		next := keyChange{kind: r.Rest[0]}
		if next.kind < changeSet || next.kind > changeClear {
			return fmt.Errorf("a change of kind %d: %w", next.kind, errValue)
		}
		r.Rest = r.Rest[1:]
		if next.key = r.Bytes(); next.kind != changeRemove {
			next.value = r.Bytes()
		}
		if r.Bad {
			return errValue
		}
		if err := visit(&next); err != nil {
			return err
		}
	}
	return nil
}

// Fold applies the changes to a map of keys to values, for tests and tools.
func (c Changes) Fold(into map[string]string) error {
	return c.each(func(o *keyChange) error {
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

// Reader reads values with their lengths in front off Rest. Bad says that one could not be read.
type Reader struct {
	Rest []byte
	Bad  bool
}

// Number is the next value, a varint.
func (r *Reader) Number() uint64 {
	n, width := binary.Uvarint(r.Rest)
	if width <= 0 {
		r.Bad, r.Rest = true, nil
		return 0
	}
	r.Rest = r.Rest[width:]
	return n
}

// Bytes are the next value, a part of Rest's memory.
func (r *Reader) Bytes() (part []byte) {
	n := r.Number()
	if n > uint64(len(r.Rest)) {
		r.Bad, r.Rest = true, nil
		return nil
	}
	part, r.Rest = r.Rest[:n:n], r.Rest[n:]
	return part
}

// Text is the next value.
func (r *Reader) Text() string { return string(r.Bytes()) }

// changesOf are the changes of a batch for a log of the state. They leave out what is on this disk alone for a sink,
// and what the state notes about its log.
func changesOf(b *pebble.Batch) (c Changes, err error) {
	for r := b.Reader(); ; {
		kind, key, value, more, err := r.Next()
		switch {
		case err != nil || !more:
			return c, err
		case !isLogged(key):
		case kind == pebble.InternalKeyKindSet:
			c = c.Set(key, value)
		case kind == pebble.InternalKeyKindDelete:
			c = c.Remove(key)
		case kind == pebble.InternalKeyKindRangeDelete:
			c = c.Clear(key, value)
		default:
			return nil, fmt.Errorf("a change of kind %s: %w", kind, errValue)
		}
	}
}

// isLogged says whether a log of the state has the key.
func isLogged(key []byte) bool {
	switch key[0] {
	case tableSpool, tableSpooled, tableDiskRow, tableDiskPlace, tableLogged, tableFormat, tableRestoring:
		return false
	}
	return true
}

// FileKey is the key, in a log of the state, of a file beside the database: a dead letter. Its value is the content.
func FileKey(name string) []byte { return append([]byte{tableFile}, name...) }

// FileRange is the range of all keys of files, from included and to not.
func FileRange() (from, to []byte) { return []byte{tableFile}, []byte{tableFile + 1} }

// formatVersion is the format of keys and values that this version reads and writes. No release had format 1.
const formatVersion = 2

// The tables are told apart by a key's first byte.
const (
	tableFormat    = 0x01
	tableRestoring = 0x02 // no key -> the place in a log up to which the directory has it, nothing while it is being filled
	tableCluster   = 'C'  // no key                           -> name, uid
	tablePending   = 'D'  // sink, terminator, stream, terminator, reason -> generation, standing
	tableHeard     = 'H'  // name of the sink                 -> what was heard through its broker
	tableLimited   = 'L'  // as tablePending, terminator, limits -> as tablePending
	tableForm      = 'F'  // stream                           -> the form in which its objects are kept
	tableMark      = 'M'  // name of the sink                 -> mark
	tableSpool     = 'Q'  // sink, terminator, part, number   -> chunk of records
	tableSpooled   = 'T'  // name of the sink                 -> extent of its spool
	tableObject    = 'O'  // stream, terminator, joined key   -> uid, version, object
	tableConfig    = 'c'  // name of the sink                 -> configuration with which it was opened last
	tableRedaction = 'R'  // no key                           -> key of the hashes
	tableResource  = 'V'  // stream                           -> version, kind, scope of its resource
	tableDefined   = 'W'  // stream                           -> generation of its custom resource's definition
	tableNamespace = 'N'  // name of a namespace              -> its labels, in JSON
	tableUID       = 'U'  // uid of a cluster                 -> history that began when it was met
	tableFile      = 'X'  // name of a file                   -> the file; in logs of the state only
	tableRow       = '1'  // sink, terminator, resource, terminator, joined key -> history, uid, resourceVersion
	tableGrave     = '2'  // as tableRow, of objects that the sink was told are gone
	tablePlace     = '3'  // sink, terminator, resource, terminator, namespace -> position, comparison
	tableDiskRow   = '4'  // as tableRow, of what is on disk for the sink -> 1 for a tombstone or 0, and as tableRow
	tableDiskPlace = '5'  // as tablePlace, with what is on disk for the sink
	tableGift      = 'G'  // sink, terminator, resource       -> what is put aside for another task
	tableGiven     = 'g'  // sink, terminator, resource, terminator, key -> what was saved there
	tableTaken     = 'B'  // sink, terminator, resource, terminator, task -> number of the gift that was taken last
	tableTasks     = 'J'  // no key                           -> the state is of one of several tasks
	//                       resource                         -> it is being taken from another one
	tableLogged = 'Y' // no key                           -> the place in the log of the state that has all of it
	//                       c                                -> the claim of the log with which the state was led last
)

// terminator is between the parts of a key, and in none of them. A prefix of some parts ends with it, so that no name
// is a prefix of another.
const terminator = 0x00

// keyOf is the key of the parts. With "" as the last part it is the prefix of all keys that begin with the other parts.
func keyOf(table byte, parts ...string) []byte {
	return append([]byte{table}, strings.Join(parts, string(rune(terminator)))...)
}

// rowKey appends the key of a row. The database orders the rows of a resource as the API server does.
func rowKey(dst []byte, table byte, sinkName string, of Object) []byte {
	dst = append(append(append(dst, table), sinkName...), terminator)
	return of.Key.AppendString(append(append(dst, of.Resource...), terminator))
}

// after is the first key after all with the prefix, which must end with a byte below 0xff; nil if the prefix is empty.
func after(prefix []byte) []byte {
	if len(prefix) == 0 {
		return nil
	}
	end := bytes.Clone(prefix)
	end[len(end)-1]++
	return end
}

// The flags of a row's value. There may be millions of rows, so the common shapes are short: a uid is 16 bytes, a
// resourceVersion a varint. Anything else is kept as text, so that what is read is exactly what was written.
const (
	uidBinary     = 1 << 0
	versionBinary = 1 << 1
)

// errValue says that no version of the exporter wrote the value.
var errValue = errors.New("a value has an unknown format")

// appendEntry appends the flags, the uid and the resourceVersion of a row.
func appendEntry(dst []byte, uid, version string) []byte {
	at := len(dst)
	dst = append(dst, 0)
	if id, ok := parseUUID(uid); ok {
		dst[at] |= uidBinary
		dst = append(dst, id[:]...)
	} else {
		dst = appendText(dst, uid)
	}
	if n, ok := parseVersion(version); ok {
		dst[at] |= versionBinary
		return binary.AppendUvarint(dst, n)
	}
	return append(dst, version...)
}

// parseEntry is the inverse of appendEntry.
func parseEntry(value []byte) (uid, version string, err error) {
	if len(value) == 0 || value[0]&^(uidBinary|versionBinary) != 0 {
		return "", "", errValue
	}
	flags, r := value[0], Reader{Rest: value[1:]}
	switch {
	case flags&uidBinary == 0:
		uid = r.Text()
	case len(r.Rest) < 16:
		return "", "", errValue
	default:
		uid, r.Rest = uuid.UUID(r.Rest[:16]).String(), r.Rest[16:]
	}
	if version = string(r.Rest); flags&versionBinary != 0 {
		version = strconv.FormatUint(r.Number(), 10)
		r.Bad = r.Bad || len(r.Rest) > 0
	}
	if r.Bad {
		return "", "", errValue
	}
	return uid, version, nil
}

// parseUUID parses a UUID in its canonical form; only that is formatted back to the same text.
func parseUUID(text string) (id uuid.UUID, ok bool) {
	if len(text) != 36 || strings.ToLower(text) != text {
		return id, false
	}
	id, err := uuid.Parse(text)
	return id, err == nil
}

// parseVersion parses a decimal number that is formatted back to the same text: no sign, no leading zero, no overflow.
func parseVersion(text string) (uint64, bool) {
	if text == "" || (text[0] == '0' && len(text) > 1) || text[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}

// appendText appends a text with its length in front.
func appendText[T string | []byte](dst []byte, text T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// appendSpool appends an extent of a spool.
func appendSpool(dst []byte, spool *fifo.Spool) []byte {
	for _, e := range spool {
		for _, n := range []uint64{e.First, e.Next, uint64(e.Bytes), uint64(e.Records)} {
			dst = binary.AppendUvarint(dst, n)
		}
	}
	return dst
}

// parseSpool is the inverse of appendSpool.
func parseSpool(value []byte) (spool fifo.Spool, err error) {
	r := Reader{Rest: value}
	for part := range spool {
		first, next := r.Number(), r.Number()
		spool[part] = fifo.Extent{First: first, Next: next, Bytes: int64(r.Number()), Records: int64(r.Number())}
	}
	switch {
	case r.Bad:
		return fifo.Spool{}, errValue
	case len(r.Rest) > 0:
		return fifo.Spool{}, errors.Join(errValue, errors.New("an extent has trailing bytes"))
	}
	return spool, nil
}
