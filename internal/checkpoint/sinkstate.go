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

// SinkState is what is saved of one sink, and what was applied to it since. One goroutine applies and saves. SavedRow,
// SavedRows, Objects and ObjectsOnDisk may be called by any other one, and read what is saved.
//
// It has two layers. The first is the fold of the sink's own log, as far as the mark. On top of it lies what the
// records say that wait for the sink on disk, if there are any. The sink is offered what comes after both. Whoever
// lacks the disk, as the next leader does, or finds that the log has gone on without it, goes on from the first layer,
// which is complete by itself.
type SinkState struct {
	layer
	Name   string
	Merges bool // a newer state may be in the place of an older one, before what is between them

	disk      *layer      // nil if nothing is on disk
	waits     bool        // records are on disk; if not, the layer of the disk becomes part of the first one
	merged    bool        // the layer of the disk is part of the first one, with the save that is under way
	diskSaved atomic.Bool // the layer of the disk is saved
	savedMark string      // as it is saved
}

// LoadSink reads what is saved of the sink; the state of an unknown one is empty.
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

// loadDisk reads the layer of the disk if there is one.
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

// Given is up to where the sink was given everything, including what is on disk for it.
func (s *SinkState) Given() *Saved {
	if s.disk != nil {
		return &s.disk.Saved
	}
	return &s.Saved
}

// Waits notes whether records wait for the sink on disk after the next save. If none do, the layer of the disk becomes
// part of the first one.
func (s *SinkState) Waits(is bool) { s.waits = is }

// Merging says whether the layer of the disk has yet to become part of the first one. It may take several saves.
func (s *SinkState) Merging() bool { return s.disk != nil && !s.waits }

// Acked applies an item that the sink has acknowledged.
func (s *SinkState) Acked(i *Item) error {
	if s.Merges {
		return s.both(i, (*layer).fold)
	}
	return s.both(i, (*layer).apply)
}

// both applies the item to both layers, to the upper one first: that reads the rows that it lacks from the lower one.
func (s *SinkState) both(i *Item, take func(l *layer, i *Item) error) error {
	if s.disk != nil {
		if err := take(s.disk, i); err != nil {
			return err
		}
	}
	return take(&s.layer, i)
}

// DropPassed drops what the positions have passed, of the resources to which something was applied since the last save:
// see Saved.DropPassed. It must not be called while a log is folded: another partition may have something older than a
// tombstone.
func (s *SinkState) DropPassed() error {
	for resource := range s.touched {
		if err := s.layer.DropPassed(resource, &s.layer); err != nil {
			return err
		}
	}
	return nil
}

// Found applies an item that the sink's log has after the mark. While records wait on disk, it is of one of them, and
// the layer of the disk has it already.
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

// Spooled applies an item whose record goes to disk for the sink with the next save.
func (s *SinkState) Spooled(i *Item) error {
	if s.disk == nil {
		s.disk = s.layer.newDiskLayer()
	}
	if s.Merges {
		return s.disk.fold(i)
	}
	return s.disk.apply(i)
}

// Logged applies an item whose record was on disk for the sink, and is in its log now.
func (s *SinkState) Logged(i *Item) error { return s.layer.fold(i) }

// SavedRow is the saved row of the object. A note that was found in the log may have named its object only by a hash.
func (s *SinkState) SavedRow(of Object) (Row, error) {
	row, err := s.saved(of, s.tables()...)
	if err != nil || row.Known() {
		return row, err
	}
	of.Key = of.Key.Hashed()
	return s.saved(of, s.tables()...)
}

// tables are the tables with the sink's rows, those of the upper layer first: the first one that has an object counts.
func (s *SinkState) tables() []byte {
	if s.diskSaved.Load() {
		return []byte{tableDiskRow, tableRow, tableGrave}
	}
	return []byte{tableRow, tableGrave}
}

// SavedRows are the rows of objects of one resource, as SavedRow returns them. If their keys rise, one pass over each
// table finds them all: a list may have a million.
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
	hashes := map[string]bool{} // by namespace: it has rows that are named by a hash
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

// find adds the table's rows of those objects that have none yet.
func (s *SinkState) find(table byte, all []Object, rows map[Object]Row) error {
	prefix := keyOf(table, s.sink, all[0].Resource, "")
	iterator, err := s.db.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return s.db.failed("read", err)
	}
	var at, key []byte // where the iterator was moved to last, and has to be moved
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

// SaveSinks makes what was applied to the states durable, with the spools and, if not nil, what is kept: all of it or
// nothing (I5). After an error it can be called again.
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

// MarkLost notes that the sink's log has lost records: see Saved.MarkLost. If the log can be read whole, it removes the
// sink's rows, which the log will tell again, and what is on disk, which the comparison will find.
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

// GiveUpDisk removes what is on disk for the sink, whose log has gone on without it: the sink was told what its log
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
	if err != nil { // it is still there
		state.disk, state.waits = disk, waits
		return err
	}
	s.forgetReclaimed(state.Name)
	state.settled()
	return nil
}

// layers are the one or two layers of the state.
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

// mergedAtOnce is how many rows of the disk's layer one save makes part of the first one (I6).
const mergedAtOnce = 4096

// merge makes a piece of the disk's layer part of the first one. All of it has reached the sink, so as a rule the first
// layer has it already.
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

// settled notes that everything that was applied is saved.
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

// CountObjects begins to keep a Digest of the objects that the sink's log has, from the saved rows and what is applied
// from now on. It is not saved, so that it cannot be wrong; to count a million rows takes two seconds.
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

// Digest is the digest of the resource's objects in the sink's log. counted is false before CountObjects.
func (s *SinkState) Digest(resource string) (d change.Digest, counted bool) {
	return s.digests[resource], s.digests != nil
}

// Objects yields the objects that the sink's log has of the resource, in the namespace, or in all with Others, whose
// joined keys are after behind. They come in the bytewise order of those keys, as saved when the loop begins. The loop
// may take its time, and may break.
func (s *SinkState) Objects(resource, namespace, behind string) iter.Seq2[SinkObject, error] {
	return s.rowsOf(tableRow, resource, namespace, behind)
}

// ObjectsOnDisk yields, as Objects does, the objects that the records on disk are of, deleted ones included.
func (s *SinkState) ObjectsOnDisk(resource, namespace, behind string) iter.Seq2[SinkObject, error] {
	if !s.diskSaved.Load() {
		return func(func(SinkObject, error) bool) {}
	}
	return s.rowsOf(tableDiskRow, resource, namespace, behind)
}
