package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/fxamacker/cbor/v2"

	"github.com/kubecdc/kubecdc/internal/change"
)

// layer is one layer of a sink's state.
//
// The rows of objects that exist and the tombstones are two tables, so that a scan of the objects that a sink has meets
// no tombstones. Tombstones are in memory, too. There are few, since a position passes them soon. The layer of the disk
// has one table for both, and keeps its tombstones.
type layer struct {
	Saved
	db          *database
	sink        string
	under       *layer                      // nil for the fold, and the fold for the layer of the disk
	pending     map[Object]applied          // since the last save
	graves      map[string]map[Object]Point // tombstones by resource, applied or saved; nil in the layer of the disk
	savedPlaces map[string]Places           // as they are saved
	touched     map[string]struct{}         // resources to which something was applied since the last save
	digests     map[string]change.Digest    // by resource, of the objects that exist; nil if nobody asks for them
}

// newLayer is an empty layer.
func newLayer(db *database, sinkName string) layer {
	return layer{
		Saved: Saved{Places: map[string]Places{}}, db: db, sink: sinkName,
		pending: map[Object]applied{}, graves: map[string]map[Object]Point{}, savedPlaces: map[string]Places{}, touched: map[string]struct{}{},
	}
}

// newDiskLayer is a layer of the disk on top of the layer, without rows.
func (l *layer) newDiskLayer() *layer {
	disk := newLayer(l.db, l.sink)
	disk.under, disk.graves = l, nil
	for resource, places := range l.Places {
		disk.Places[resource] = maps.Clone(places)
	}
	return &disk
}

// applied is a row that is not saved yet; the zero Row removes it.
type applied struct {
	Row
	buried bool // a tombstone of the object may be saved
}

// loadPlaces reads the sink's places in the table.
func (l *layer) loadPlaces(table byte) error {
	all, err := l.db.places(table, l.sink)
	maps.Copy(l.Places, all[l.sink])
	for resource, places := range all[l.sink] {
		l.savedPlaces[resource] = maps.Clone(places)
	}
	return err
}

// places are the places in the table, by sink and resource; no names are all sinks.
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
	for grave, err := range l.rows(prefix, after(prefix)) {
		if err != nil {
			return err
		}
		l.bury(grave.Of, grave.At)
	}
	return nil
}

func (l *layer) bury(of Object, at Point) {
	if l.graves[of.Resource] == nil {
		l.graves[of.Resource] = map[Object]Point{}
	}
	l.graves[of.Resource][of] = at
}

func (l *layer) apply(i *Item) error {
	l.touched[i.Resource] = struct{}{}
	return l.Apply(i, l)
}

func (l *layer) fold(i *Item) error {
	l.touched[i.Resource] = struct{}{}
	return l.Fold(i, l)
}

// Row is what was saved or applied last of the object.
func (l *layer) Row(of Object) (Row, error) {
	if row, is := l.pending[of]; is {
		return row.Row, nil
	}
	if l.under == nil {
		return l.saved(of, tableRow, tableGrave)
	}
	row, err := l.saved(of, tableDiskRow)
	if err != nil || row.Known() {
		return row, err
	}
	return l.under.Row(of)
}

// saved is the row of the object in the first of the tables that has one, the zero value if none has.
func (l *layer) saved(of Object, tables ...byte) (Row, error) {
	for _, table := range tables {
		value, found, err := l.db.get(rowKey(nil, table, l.sink, of))
		if err != nil {
			return Row{}, err
		}
		if !found {
			continue
		}
		row, err := parseRow(table, value)
		if err != nil {
			return Row{}, l.db.badValue(of.Resource+" "+of.Key.String()+" of sink "+l.sink, err)
		}
		return row, nil
	}
	return Row{}, nil
}

// Put implements Rows.
func (l *layer) Put(of Object, row Row) error {
	if l.digests != nil {
		before, err := l.Row(of)
		if err != nil {
			return err
		}
		l.digests[of.Resource] = l.digests[of.Resource].Minus(before.digest(of)).Plus(row.digest(of))
	}
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

// digest is the digest of the row's object if it exists.
func (r Row) digest(of Object) change.Digest {
	if !r.Exists() {
		return change.Digest{}
	}
	return change.DigestOf(of.Key, r.UID, r.At.Version)
}

// Passed implements Rows.
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

// fill writes what was applied.
func (l *layer) fill(r *rows) {
	onDisk := l.under != nil
	for resource := range l.touched {
		if onDisk {
			l.fillPlaces(r, tableDiskPlace, resource)
		} else {
			l.fillPlaces(r, tablePlace, resource)
		}
	}
	for of, row := range l.pending {
		if onDisk {
			r.setRow(tableDiskRow, l.sink, of, &row.Row)
			continue
		}
		l.fillRow(r, of, &row)
	}
}

func (l *layer) fillRow(r *rows, of Object, row *applied) {
	if row.Exists() {
		r.setRow(tableRow, l.sink, of, &row.Row)
	} else {
		r.setRow(tableRow, l.sink, of, nil)
	}
	switch {
	case row.Gone:
		r.setRow(tableGrave, l.sink, of, &row.Row)
	case row.buried:
		r.setRow(tableGrave, l.sink, of, nil)
	}
}

// setRow sets the object's row in the table; nil removes it.
func (r *rows) setRow(table byte, sinkName string, of Object, row *Row) {
	if r.key = rowKey(r.key[:0], table, sinkName, of); row == nil {
		r.remove(r.key)
		return
	}
	r.value = appendRow(r.value[:0], table, *row)
	r.set(r.key, r.value)
}

// fillPlaces writes the places of the resource that differ from the saved ones.
func (l *layer) fillPlaces(r *rows, table byte, resource string) {
	for namespace, place := range l.Places[resource] {
		if saved, is := l.savedPlaces[resource][namespace]; !is || saved != place {
			r.set(keyOf(table, l.sink, resource, namespace), appendPlace(nil, place))
		}
	}
	for namespace := range l.savedPlaces[resource] {
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

// noPlace takes the place of a namespace in a key. It says that the layer of the disk has no place of the resource.
const noPlace = ""

// SinkObject is an object with its row.
type SinkObject struct {
	Of Object
	Row
}

// scanChunk is how many rows a scan reads at once.
const scanChunk = 512

// rowsOf yields the rows of the table as Objects does.
func (l *layer) rowsOf(table byte, resource, namespace, behind string) iter.Seq2[SinkObject, error] {
	prefix := rowPrefix(table, l.sink, resource, Scope(namespace))
	from := prefix
	if behind != "" {
		from = keyOf(table, l.sink, resource, behind, "")
	}
	return l.rows(from, after(prefix))
}

// rowPrefix begins the keys of the sink's rows in the scope.
func rowPrefix(table byte, sinkName, resource string, scope Scope) []byte {
	if scope != Others {
		return keyOf(table, sinkName, resource, string(scope)+"/")
	}
	return keyOf(table, sinkName, resource, "")
}

// rows yields the rows from one key up to another, without that, as of when the loop begins.
func (l *layer) rows(from, to []byte) iter.Seq2[SinkObject, error] {
	return func(yield func(SinkObject, error) bool) {
		view := l.db.db.NewSnapshot()
		defer func() { _ = view.Close() }() // it never fails
		for from := from; from != nil; {
			chunk, next, err := l.read(view, from, to, scanChunk)
			if err != nil {
				yield(SinkObject{}, err)
				return
			}
			for _, row := range chunk {
				if !yield(row, nil) {
					return
				}
			}
			from = next
		}
	}
}

// read reads at most so many rows of a table from one key up to another, without that. next is where the remaining ones
// begin, nil at the end. Between two calls no iterator is open, which would keep files and memtables alive for as long
// as the reader takes (I6).
func (l *layer) read(view pebble.Reader, from, to []byte, most int) (rows []SinkObject, next []byte, err error) {
	resource, bad := "", error(nil)
	err = l.db.iterate(view, from, to, func(at *pebble.Iterator) bool {
		if len(rows) == most {
			next = bytes.Clone(at.Key())
			return false
		}
		of, joined, _ := bytes.Cut(at.Key()[len(l.sink)+2:], []byte{terminator})
		if string(of) != resource {
			resource = string(of)
		}
		row := SinkObject{Of: Object{resource, change.ParseKey(string(joined))}}
		row.Row, bad = parseRow(from[0], at.Value())
		rows = append(rows, row)
		return bad == nil && at.Next()
	})
	if bad != nil {
		err = errors.Join(err, l.db.badValue("an object of sink "+l.sink, bad))
	}
	return rows, next, err
}

// appendRow appends the value of a row: history, uid, version. In the table of the disk's layer it begins with whether
// it is a tombstone; elsewhere the table says that.
func appendRow(dst []byte, table byte, row Row) []byte {
	switch {
	case table == tableDiskRow && row.Gone:
		dst = append(dst, 1)
	case table == tableDiskRow:
		dst = append(dst, 0)
	}
	return appendEntry(binary.AppendUvarint(dst, uint64(row.At.History)), row.UID, row.At.Version)
}

// parseRow is the inverse of appendRow.
func parseRow(table byte, value []byte) (row Row, err error) {
	row.Gone = table == tableGrave
	if table == tableDiskRow {
		if len(value) == 0 || value[0] > 1 {
			return Row{}, errValue
		}
		row.Gone, value = value[0] == 1, value[1:]
	}
	history, width := binary.Uvarint(value)
	if width <= 0 || history == 0 {
		return Row{}, errValue
	}
	row.At.History = History(history)
	row.UID, row.At.Version, err = parseEntry(value[width:])
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
