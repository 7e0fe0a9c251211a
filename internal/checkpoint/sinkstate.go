package checkpoint

import (
	"bytes"
	"errors"
	"iter"
	"maps"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kubecdc/kubecdc/internal/change"
)

// SinkState is what is saved of one sink, and what is applied to it since. One goroutine applies and saves; SavedRow,
// Objects and ObjectsOnDisk may be called by any other one, and answer what is saved.
//
// It has two layers. The first is the fold of the sink's own log, as far as the mark. On top of it lies what the
// records say that wait for the sink on disk, as long as some do. The sink is given what comes after both. Whoever has
// not got the disk, as the next leader, or finds that the log goes on in another way, has the first layer, which lacks
// nothing.
type SinkState struct {
	layer
	Name   string
	Merges bool // a newer state may be in the place of an older one, before what is between them

	disk      *layer      // nil is that nothing is on disk
	waits     bool        // records are; else the layer of the disk becomes part of the first one
	merged    bool        // it is, with the next save
	diskSaved atomic.Bool // the layer of the disk is saved
	savedMark string      // as it is saved
}

// LoadSink reads what is saved of the sink, nothing for one that is not known.
func (s *Store) LoadSink(name string) (*SinkState, error) {
	state := &SinkState{layer: newLayer(s.database, name), Name: name}
	mark, _, err := s.get(keyOf(tableMark, name))
	if err != nil {
		return nil, err
	}
	state.Mark, state.savedMark = string(mark), string(mark)
	spool, err := s.Spool(name)
	if err != nil {
		return nil, err
	}
	state.waits = !spool.Empty()
	return state, inOrder(func() error { return state.loadPlaces(tablePlace) }, state.loadGraves, state.loadDisk)
}

// loadDisk reads the layer of the disk, where there is one.
func (s *SinkState) loadDisk() error {
	for _, table := range []byte{tableDiskPlace, tableDiskRow} {
		has, err := s.db.holds(keyOf(table, s.Name, ""))
		if err != nil {
			return err
		}
		s.diskSaved.Store(s.diskSaved.Load() || has)
	}
	if !s.diskSaved.Load() {
		return nil
	}
	s.disk = s.layer.newDiskLayer()
	return s.disk.loadPlaces(tableDiskPlace)
}

// Given are the places up to which the sink was given everything, with what is on disk for it.
func (s *SinkState) Given() *Saved {
	if s.disk != nil {
		return &s.disk.Saved
	}
	return &s.Saved
}

// Waits notes whether records wait for the sink on disk with the next save. Without any, the layer of the disk becomes
// part of the first one.
func (s *SinkState) Waits(is bool) { s.waits = is }

// Merging says whether that takes further saves.
func (s *SinkState) Merging() bool { return s.disk != nil && !s.waits }

// Acked makes an item part of the state that the sink has acknowledged.
func (s *SinkState) Acked(i *Item) error {
	if s.Merges {
		return s.both(i, (*layer).fold)
	}
	return s.both(i, (*layer).apply)
}

// both takes the item into both layers, into the upper one first: that looks for what it lacks in the lower one.
func (s *SinkState) both(i *Item, take func(l *layer, i *Item) error) error {
	if s.disk != nil {
		if err := take(s.disk, i); err != nil {
			return err
		}
	}
	return take(&s.layer, i)
}

// DropPassed drops what the positions have passed of the resources that were applied since the last save: see
// Saved.DropPassed. It is not called while a log is folded: what comes from another of its partitions may be older than
// a tombstone.
func (s *SinkState) DropPassed() error {
	for resource := range s.touched {
		if err := s.layer.DropPassed(resource, &s.layer); err != nil {
			return err
		}
	}
	return nil
}

// Found makes an item part of the state that the sink's log has after the mark. While records wait on disk, it is one
// of them, and the layer of the disk has it.
func (s *SinkState) Found(i *Item) error {
	if s.waits {
		return s.layer.fold(i)
	}
	return s.both(i, (*layer).fold)
}

// ForgetAsked ends the full comparisons that an earlier life of the sink was asked for. What is owed is asked for
// again.
func (s *SinkState) ForgetAsked() {
	for _, l := range s.layers() {
		l.forgetAsked(func(resource string) { l.touched[resource] = struct{}{} })
	}
}

// Spooled makes an item part of the state that goes to disk for the sink with the next save.
func (s *SinkState) Spooled(i *Item) error {
	if s.disk == nil {
		s.disk = s.layer.newDiskLayer()
	}
	if s.Merges {
		return s.disk.fold(i)
	}
	return s.disk.apply(i)
}

// Logged makes an item part of the state that was on disk for the sink, and is in its log now.
func (s *SinkState) Logged(i *Item) error { return s.layer.fold(i) }

// SavedRow is what the sink was given last of the object, as it is saved. A note that was found in the log may name its
// object by a hash only.
func (s *SinkState) SavedRow(of Object) (Row, error) {
	row, err := s.saved(of, s.tables()...)
	if err != nil || row.Known() {
		return row, err
	}
	of.Key = of.Key.Hashed()
	return s.saved(of, s.tables()...)
}

// tables have the rows of the sink, those of the layer on top first: the first one that has an object counts.
func (s *SinkState) tables() []byte {
	if s.diskSaved.Load() {
		return []byte{tableDiskRow, tableRow, tableGrave}
	}
	return []byte{tableRow, tableGrave}
}

// SavedRows are the rows of objects of one resource, as SavedRow says of each. Where their keys rise, one pass over
// each table finds them all: a list has a million.
func (s *SinkState) SavedRows(all []Object) (map[Object]Row, error) {
	rows := make(map[Object]Row, len(all))
	for _, of := range all {
		rows[of] = Row{}
	}
	for _, table := range s.tables() {
		if err := s.find(table, all, rows); err != nil {
			return nil, err
		}
	}
	hashes := map[string]bool{} // by namespace: there are rows that a hash names
	for _, of := range all {
		if rows[of].Known() {
			continue
		}
		hashed := Object{of.Resource, of.Key.Hashed()}
		has, asked := hashes[of.Key.Namespace]
		for _, table := range s.tables() {
			var err error
			if asked || has {
				break
			}
			if has, err = s.db.holds(rowKey(nil, table, s.sink, Object{of.Resource, of.Key.HashPrefix()})); err != nil {
				return nil, err
			}
		}
		if hashes[of.Key.Namespace] = has; has {
			var err error
			if rows[of], err = s.saved(hashed, s.tables()...); err != nil {
				return nil, err
			}
		}
	}
	return rows, nil
}

// find adds the rows that the table has of the objects which have none.
func (s *SinkState) find(table byte, all []Object, rows map[Object]Row) error {
	prefix := keyOf(table, s.sink, all[0].Resource, "")
	iterator, err := s.db.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return s.db.failed("read", err)
	}
	var at, key []byte // where the iterator was led to, and is to be led
	for _, of := range all {
		if rows[of].Known() {
			continue
		}
		key = rowKey(key[:0], table, s.sink, of)
		between := at != nil && bytes.Compare(at, key) <= 0 && (!iterator.Valid() || bytes.Compare(key, iterator.Key()) <= 0)
		if !between {
			iterator.SeekGE(key)
			at = append(at[:0], key...)
		}
		if !iterator.Valid() || !bytes.Equal(iterator.Key(), key) {
			continue
		}
		row, err := parseRow(table, iterator.Value())
		if err != nil {
			return errors.Join(s.db.badValue(of.Resource+" "+of.Key.String()+" of sink "+s.sink, err), iterator.Close())
		}
		rows[of] = row
	}
	if err := iterator.Close(); err != nil { // it repeats the error that ended the loop
		return s.db.failed("read", err)
	}
	return nil
}

// SaveSinks makes what was applied to the states durable, with what is kept where that is not nil: all of it or nothing
// (I5). After an error it can be called again.
func (s *Store) SaveSinks(states []*SinkState, spools Spools, keeping *Keeping) error {
	err := s.write(func(r *rows) error {
		for _, state := range states {
			if err := state.fill(r); err != nil {
				return err
			}
		}
		if keeping != nil {
			if err := s.keep(r, keeping); err != nil {
				return err
			}
		}
		s.put(r, spools)
		return nil
	})
	if err != nil {
		return err
	}
	for _, state := range states {
		state.settled()
	}
	return s.reclaim(spools)
}

// MarkLost notes that the sink's log has lost records: see Saved.MarkLost. Where the log is read whole then, nothing is
// known of the sink until that is done, and what is on disk for it is gone: the comparison finds it.
func (s *Store) MarkLost(state *SinkState, whole bool) error {
	for _, l := range state.layers() {
		l.MarkLost(whole)
		for resource := range l.Places {
			l.touched[resource] = struct{}{}
		}
	}
	if !whole {
		return s.SaveSinks([]*SinkState{state}, Spools{}, nil)
	}
	clear(state.pending)
	clear(state.graves)
	return s.giveUpDisk(state, func(r *rows) {
		r.removeAll(keyOf(tableRow, state.Name, ""))
		r.removeAll(keyOf(tableGrave, state.Name, ""))
	})
}

// GiveUpDisk removes what is on disk for the sink, whose log goes on in another way: the sink was told what its log
// has.
func (s *Store) GiveUpDisk(state *SinkState) error { return s.giveUpDisk(state, func(*rows) {}) }

func (s *Store) giveUpDisk(state *SinkState, more func(r *rows)) error {
	disk, waits := state.disk, state.waits
	state.disk, state.waits = nil, false
	err := s.write(func(r *rows) error {
		more(r)
		for _, table := range []byte{tableDiskRow, tableDiskPlace, tableSpool} {
			r.removeAll(keyOf(table, state.Name, ""))
		}
		r.remove(keyOf(tableSpooled, state.Name))
		return state.fill(r)
	})
	if err != nil { // it is there still
		state.disk, state.waits = disk, waits
		return err
	}
	s.forgetReclaimed(state.Name)
	state.settled()
	return nil
}

// layers are those that there are.
func (s *SinkState) layers() []*layer {
	if s.disk == nil {
		return []*layer{&s.layer}
	}
	return []*layer{&s.layer, s.disk}
}

// fill writes what was applied since the last save.
func (s *SinkState) fill(r *rows) error {
	if s.Merging() {
		if err := s.merge(r); err != nil {
			return err
		}
	}
	s.layer.fill(r)
	if s.disk != nil && !s.merged {
		s.disk.fill(r)
	}
	if s.Mark != s.savedMark {
		r.set(keyOf(tableMark, s.Name), []byte(s.Mark))
	}
	return nil
}

// mergedAtOnce is how many rows of the disk's layer become part of the first one with one save (I6).
const mergedAtOnce = 4096

// merge makes a piece of the disk's layer, of which all has reached the sink, part of the first one: as a rule the log
// has said so already.
func (s *SinkState) merge(r *rows) error {
	prefix := keyOf(tableDiskRow, s.Name, "")
	piece, more, err := s.disk.read(s.db.db, prefix, after(prefix), mergedAtOnce)
	if err != nil {
		return err
	}
	if more == nil {
		for of, row := range s.disk.pending {
			piece = append(piece, SinkObject{of, row.Row})
		}
	}
	for _, row := range piece {
		r.setRow(tableDiskRow, s.Name, row.Of, nil)
		have, err := s.layer.Row(row.Of)
		if err != nil {
			return err
		}
		if !row.At.After(have.At) {
			continue
		}
		s.layer.touched[row.Of.Resource] = struct{}{}
		if err := s.layer.Put(row.Of, row.Row); err != nil {
			return err
		}
	}
	if more != nil {
		return nil
	}
	for resource, places := range s.disk.Places {
		s.Places[resource], s.layer.touched[resource] = maps.Clone(places), struct{}{}
	}
	r.removeAll(prefix)
	r.removeAll(keyOf(tableDiskPlace, s.Name, ""))
	s.merged = true
	return nil
}

// settled notes that all of it is saved.
func (s *SinkState) settled() {
	if s.merged {
		s.disk, s.merged = nil, false
	}
	for _, l := range s.layers() {
		for resource := range l.touched {
			l.savedPlaces[resource] = maps.Clone(l.Places[resource])
		}
		clear(l.touched)
		clear(l.pending)
	}
	s.diskSaved.Store(s.disk != nil)
	s.savedMark = s.Mark
}

// CountObjects makes Digest that of the objects which the sink's log has as it is saved, and of what is applied from
// now on. It is not saved: a million rows take two seconds, and no state can have one that is wrong.
func (s *SinkState) CountObjects() error {
	digests, prefix := map[string]change.Digest{}, keyOf(tableRow, s.Name, "")
	for row, err := range s.rows(prefix, after(prefix)) {
		if err != nil {
			return err
		}
		digests[row.Of.Resource] = digests[row.Of.Resource].Plus(row.digest(row.Of))
	}
	s.digests = digests
	return nil
}

// Digest is that of the resource's objects in the sink's log, where they are counted.
func (s *SinkState) Digest(resource string) (d change.Digest, counted bool) {
	return s.digests[resource], s.digests != nil
}

// Objects yields the objects that the sink's log has of the resource, in the namespace or with Others in all, whose
// joined keys are after the given one, in the bytewise order of those keys, as they are saved when the loop begins. The
// loop may take its time, and may break.
func (s *SinkState) Objects(resource, namespace, behind string) iter.Seq2[SinkObject, error] {
	return s.rowsOf(tableRow, resource, namespace, behind)
}

// ObjectsOnDisk yields, as Objects does, those that something on disk is of, also where that is their end.
func (s *SinkState) ObjectsOnDisk(resource, namespace, behind string) iter.Seq2[SinkObject, error] {
	if !s.diskSaved.Load() {
		return func(func(SinkObject, error) bool) {}
	}
	return s.rowsOf(tableDiskRow, resource, namespace, behind)
}
