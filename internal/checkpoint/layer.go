package checkpoint

import (
	"bytes"
	"encoding/binary"
	"iter"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/fxamacker/cbor/v2"

	"github.com/kubecdc/kubecdc/internal/change"
)

// layer is one of a sink's state.
//
// The rows of objects that exist and the tombstones are two tables: who looks for the objects that a sink has passes
// over no delete. The tombstones that are saved are in memory, too. There are few: a position passes them soon. The
// layer of the disk has one table for both, and keeps its tombstones.
type layer struct {
	Saved
	db      *database
	sink    string
	under   *layer                      // nil for the first
	pending map[Object]applied          // since the last save
	graves  map[string]map[Object]Point // tombstones by resource, applied or saved; nil for the disk's
	places  map[string]Places           // as they are saved
	told    map[string]struct{}         // resources of which something was applied since the last save
}

// newLayer is an empty one.
func newLayer(db *database, sinkName string) layer {
	return layer{
		Saved: Saved{Places: map[string]Places{}}, db: db, sink: sinkName,
		pending: map[Object]applied{}, graves: map[string]map[Object]Point{}, places: map[string]Places{}, told: map[string]struct{}{},
	}
}

// onDisk is an empty layer of the disk on top of the layer.
func (l *layer) onDisk() *layer {
	disk := newLayer(l.db, l.sink)
	disk.under, disk.graves = l, nil
	for resource, places := range l.Places {
		disk.Places[resource] = maps.Clone(places)
	}
	return &disk
}

// applied is a row that is not saved yet; the zero value is none.
type applied struct {
	Row
	buried bool // a tombstone of the object may be saved
}

// loadPlaces reads those of the table.
func (l *layer) loadPlaces(table byte) error {
	all, err := l.db.places(table, l.sink)
	maps.Copy(l.Places, all[l.sink])
	for resource, places := range all[l.sink] {
		l.places[resource] = maps.Clone(places)
	}
	return err
}

// places are those of the table.
func (d *database) places(table byte, sinkNames ...string) (map[string]map[string]Places, error) {
	all := map[string]map[string]Places{}
	err := d.each([]byte{table}, func(key, value []byte) error {
		parts := bytes.SplitN(key[1:], []byte{terminator}, 3)
		if len(parts) != 3 {
			return d.badValue("a position of a sink", errValue)
		}
		name, resource, namespace := string(parts[0]), string(parts[1]), string(parts[2])
		if len(sinkNames) > 0 && !slices.Contains(sinkNames, name) {
			return nil
		}
		if all[name] == nil {
			all[name] = map[string]Places{}
		}
		if all[name][resource] == nil {
			all[name][resource] = Places{}
		}
		if namespace == noPlace {
			return nil
		}
		place, err := parsePlace(value)
		if err != nil {
			return d.badValue("a position of sink "+name, err)
		}
		all[name][resource][namespace] = place
		return nil
	})
	return all, err
}

func (l *layer) loadGraves() error {
	prefix := keyOf(tableGrave, l.sink, "")
	return l.db.each(prefix, func(key, value []byte) error {
		resource, joined, ok := bytes.Cut(key[len(prefix):], []byte{terminator})
		row, err := parseRow(value)
		if !ok || err != nil {
			return l.db.badValue("a tombstone of sink "+l.sink, errValue)
		}
		l.bury(Object{string(resource), change.ParseKey(string(joined))}, row.At)
		return nil
	})
}

func (l *layer) bury(of Object, at Point) {
	if l.graves[of.Resource] == nil {
		l.graves[of.Resource] = map[Object]Point{}
	}
	l.graves[of.Resource][of] = at
}

func (l *layer) apply(i *Item) error {
	l.told[i.Resource] = struct{}{}
	return l.Apply(i, l)
}

func (l *layer) fold(i *Item) error {
	l.told[i.Resource] = struct{}{}
	return l.Fold(i, l)
}

// Row is what was saved or applied last of the object.
func (l *layer) Row(of Object) (Row, error) {
	if row, is := l.pending[of]; is {
		return row.Row, nil
	}
	if l.under == nil {
		return l.savedRow(of)
	}
	row, err := l.diskRow(of)
	if err != nil || row.Known() {
		return row, err
	}
	return l.under.Row(of)
}

func (l *layer) savedRow(of Object) (Row, error) {
	for _, table := range []byte{tableRow, tableGrave} {
		row, err := l.read(table, of, parseRow)
		if row.Gone = table == tableGrave; row.Known() || err != nil {
			return row, err
		}
	}
	return Row{}, nil
}

func (l *layer) diskRow(of Object) (Row, error) { return l.read(tableDiskRow, of, parseDiskRow) }

// read is the row that the table has of the object, the zero value for none.
func (l *layer) read(table byte, of Object, parse func(value []byte) (Row, error)) (row Row, err error) {
	value, found, err := l.db.get(rowKey(nil, table, l.sink, of))
	if err != nil || !found {
		return Row{}, err
	}
	if row, err = parse(value); err != nil {
		return Row{}, l.db.badValue(of.Resource+" "+of.Key.String()+" of sink "+l.sink, err)
	}
	return row, nil
}

// Put is Rows'.
func (l *layer) Put(of Object, row Row) error {
	_, buried := l.graves[of.Resource][of]
	l.pending[of] = applied{row, buried || l.pending[of].buried}
	switch {
	case l.graves == nil:
	case row.Gone:
		l.bury(of, row.At)
	default:
		delete(l.graves[of.Resource], of)
	}
	return nil
}

// Passed is Rows'.
func (l *layer) Passed(resource, namespace string, upTo Point, named func(string) bool) error {
	for of, at := range l.graves[resource] {
		mine := of.Key.Namespace == namespace || namespace == Others && !named(of.Key.Namespace)
		if mine && !at.After(upTo) {
			l.pending[of] = applied{buried: true}
			delete(l.graves[resource], of)
		}
	}
	return nil
}

// mergedAtOnce is how many rows of the disk's layer become part of the first one with one save (I6).
const mergedAtOnce = 4096

// piece is the first of the saved rows of the disk's layer, and whether there are more.
func (l *layer) piece() (rows []SinkObject, more bool, err error) {
	prefix := keyOf(tableDiskRow, l.sink, "")
	iterator, err := l.db.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return nil, false, l.db.failed("read", err)
	}
	for valid := iterator.First(); valid && !more && err == nil; valid = iterator.Next() {
		if more = len(rows) == mergedAtOnce; more {
			break
		}
		var row SinkObject
		resource, joined, _ := bytes.Cut(iterator.Key()[len(prefix):], []byte{terminator})
		row.Of = Object{string(resource), change.ParseKey(string(joined))}
		row.Row, err = parseDiskRow(iterator.Value())
		rows = append(rows, row)
	}
	if closed := iterator.Close(); closed != nil {
		return nil, false, l.db.failed("read", closed)
	}
	if err != nil {
		return nil, false, l.db.badValue("an object of sink "+l.sink, err)
	}
	return rows, more, nil
}

func (l *layer) fill(r *rows) error {
	for resource := range l.told {
		if err := l.Settle(resource, l); err != nil {
			return err
		}
		l.fillPlaces(r, tablePlace, resource)
	}
	for of, row := range l.pending {
		r.key = rowKey(r.key[:0], tableRow, l.sink, of)
		if row.Exists() {
			r.value = appendRow(r.value[:0], row.Row)
			r.set(r.key, r.value)
		} else {
			r.remove(r.key)
		}
		r.key = rowKey(r.key[:0], tableGrave, l.sink, of)
		switch {
		case row.Gone:
			r.value = appendRow(r.value[:0], row.Row)
			r.set(r.key, r.value)
		case row.buried:
			r.remove(r.key)
		}
	}
	return nil
}

// fillDisk writes what was applied to the layer of the disk.
func (l *layer) fillDisk(r *rows) {
	for resource := range l.told {
		l.fillPlaces(r, tableDiskPlace, resource)
	}
	for of, row := range l.pending {
		r.key = rowKey(r.key[:0], tableDiskRow, l.sink, of)
		r.value = appendDiskRow(r.value[:0], row.Row)
		r.set(r.key, r.value)
	}
}

// fillPlaces writes those of the resource that are others than the saved ones.
func (l *layer) fillPlaces(r *rows, table byte, resource string) {
	for namespace, place := range l.Places[resource] {
		if saved, is := l.places[resource][namespace]; !is || saved != place {
			r.set(keyOf(table, l.sink, resource, namespace), appendPlace(nil, place))
		}
	}
	for namespace := range l.places[resource] {
		if _, is := l.Places[resource][namespace]; !is {
			r.remove(keyOf(table, l.sink, resource, namespace))
		}
	}
	if none := keyOf(table, l.sink, resource, noPlace); table == tableDiskPlace && len(l.Places[resource]) == 0 {
		r.set(none, nil)
	} else if table == tableDiskPlace {
		r.remove(none)
	}
}

// noPlace is in the place of a namespace, and says that the layer of the disk has none of the resource.
const noPlace = ""

// rowRange is what of a table is read: one resource, after the joined key.
type rowRange struct {
	table                       byte
	resource, namespace, behind string
}

func (l *layer) rows(of rowRange, parse func(value []byte) (Row, error)) iter.Seq2[SinkObject, error] {
	return func(yield func(SinkObject, error) bool) {
		prefix := keyOf(of.table, l.sink, of.resource, "")
		from := prefix
		if of.namespace != Others {
			from = append(append(slices.Clone(prefix), of.namespace...), '/')
		}
		to := after(from)
		if of.behind != "" {
			from = append(append(slices.Clone(prefix), of.behind...), 0)
		}
		view := l.db.db.NewSnapshot()
		defer func() { _ = view.Close() }() // it never fails
		chunk := make([]SinkObject, 0, scanChunk)
		part := &keyRange{prefix: len(prefix), from: from, to: to}
		for part.from != nil {
			var err error
			if chunk, err = l.readRows(view, part, chunk[:0], parse); err != nil {
				yield(SinkObject{}, err)
				return
			}
			for _, row := range chunk {
				if row.Of.Resource = of.resource; !yield(row, nil) {
					return
				}
			}
		}
	}
}

// SinkObject is an object with its row.
type SinkObject struct {
	Of Object
	Row
}

// readRows appends rows of the range until dst is full, and takes what it has read from the range. Between two calls no
// iterator is open, which would keep files and memtables alive for as long as the reader takes (I6).
func (l *layer) readRows(
	view pebble.Reader, part *keyRange, dst []SinkObject, parse func(value []byte) (Row, error),
) ([]SinkObject, error) {
	iterator, err := view.NewIter(&pebble.IterOptions{LowerBound: part.from, UpperBound: part.to})
	if err != nil {
		return nil, l.db.failed("read", err)
	}
	part.from = nil
	var bad error
	for iterator.First(); iterator.Valid() && bad == nil; iterator.Next() {
		if len(dst) == cap(dst) {
			part.from = bytes.Clone(iterator.Key())
			break
		}
		var row SinkObject
		row.Of.Key = change.ParseKey(string(iterator.Key()[part.prefix:]))
		row.Row, bad = parse(iterator.Value())
		dst = append(dst, row)
	}
	if err := iterator.Close(); err != nil {
		return nil, l.db.failed("read", err)
	}
	if bad != nil {
		return nil, l.db.badValue("an object of sink "+l.sink, bad)
	}
	return dst, nil
}

// scanChunk is how many rows a scan reads at once.
const scanChunk = 512

// keyRange is what is still to be read of a scan.
type keyRange struct {
	prefix   int    // the length of what comes before the joined key
	from, to []byte // from is nil at the end
}

// appendRow appends the value of a row: history, uid, version. Its table says whether it is a tombstone.
func appendRow(dst []byte, row Row) []byte {
	return appendEntry(binary.AppendUvarint(dst, uint64(row.At.History)), row.UID, row.At.Version)
}

// parseRow is the inverse of appendRow.
func parseRow(value []byte) (row Row, err error) {
	history, width := binary.Uvarint(value)
	if width <= 0 || history == 0 {
		return Row{}, errValue
	}
	row.At.History = History(history)
	row.UID, row.At.Version, err = parseEntry(value[width:])
	return row, err
}

// appendDiskRow appends the value of a row of what is on disk: whether it is a tombstone, and the row.
func appendDiskRow(dst []byte, row Row) []byte {
	gone := byte(0)
	if row.Gone {
		gone = 1
	}
	return appendRow(append(dst, gone), row)
}

// parseDiskRow is the inverse of appendDiskRow.
func parseDiskRow(value []byte) (row Row, err error) {
	if len(value) == 0 || value[0] > 1 {
		return Row{}, errValue
	}
	row, err = parseRow(value[1:])
	row.Gone = value[0] == 1
	return row, err
}

// appendPlace appends a place, in CBOR (RFC 8949).
func appendPlace(dst []byte, p Place) []byte {
	text, _ := cbor.Marshal(p) // of numbers and texts it cannot fail
	return append(dst, text...)
}

// parsePlace is the inverse of appendPlace.
func parsePlace(value []byte) (p Place, err error) {
	err = cbor.Unmarshal(value, &p)
	return p, err
}
