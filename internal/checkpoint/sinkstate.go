package checkpoint

import (
	"bytes"
	"encoding/binary"
	"iter"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// SinkState is what is saved of one sink, and what is applied to it since. One goroutine applies and saves; Row may be
// asked by any other one, and answers what is saved.
//
// The rows of objects that exist and the tombstones are two tables: who looks for the objects that a sink has passes
// over no delete. The tombstones that are saved are in memory, too. There are few: a position passes them soon.
type SinkState struct {
	Saved
	Name string

	db      *database
	pending map[Object]applied          // since the last save
	graves  map[string]map[Object]Point // tombstones by resource, applied or saved
	places  map[string]Places           // as they are saved
	mark    string                      // as it is saved
	told    map[string]struct{}         // resources of which something was applied since the last save
}

// LoadSink reads what is saved of the sink, nothing for one that is not known.
func (s *Store) LoadSink(name string) (*SinkState, error) {
	state := &SinkState{
		Saved: Saved{Places: map[string]Places{}}, Name: name, db: s.database,
		pending: map[Object]applied{}, graves: map[string]map[Object]Point{}, places: map[string]Places{}, told: map[string]struct{}{},
	}
	mark, _, err := s.get(markKey(name))
	if err != nil {
		return nil, err
	}
	state.Mark, state.mark = string(mark), string(mark)
	spool, err := s.Spool(name)
	if err != nil {
		return nil, err
	}
	state.OnDisk = !spool.Empty()
	return state, inOrder(state.loadPlaces, state.loadGraves)
}

// applied is a row that is not saved yet; the zero value is none.
type applied struct {
	Row
	buried bool // a tombstone of the object may be saved
}

func (s *SinkState) loadPlaces() error {
	prefix := sinkPrefix(tablePlace, s.Name)
	return s.db.each(prefix, func(key, value []byte) error {
		resource, namespace, ok := bytes.Cut(key[len(prefix):], []byte{terminator})
		place, err := parsePlace(value)
		if !ok || err != nil {
			return s.db.badValue("a position of sink "+s.Name, errValue)
		}
		s.of(string(resource))[string(namespace)] = place
		if s.places[string(resource)] == nil {
			s.places[string(resource)] = Places{}
		}
		s.places[string(resource)][string(namespace)] = place
		return nil
	})
}

func (s *SinkState) loadGraves() error {
	prefix := sinkPrefix(tableGrave, s.Name)
	return s.db.each(prefix, func(key, value []byte) error {
		resource, joined, ok := bytes.Cut(key[len(prefix):], []byte{terminator})
		row, err := parseRow(value)
		if !ok || err != nil {
			return s.db.badValue("a tombstone of sink "+s.Name, errValue)
		}
		s.bury(Object{string(resource), change.ParseKey(string(joined))}, row.At)
		return nil
	})
}

func (s *SinkState) bury(of Object, at Point) {
	if s.graves[of.Resource] == nil {
		s.graves[of.Resource] = map[Object]Point{}
	}
	s.graves[of.Resource][of] = at
}

// Told makes an item part of the state that the sink has acknowledged, or that goes to disk for it with the next save.
func (s *SinkState) Told(i *Item) error {
	s.told[i.Resource] = struct{}{}
	return s.Apply(i, s)
}

// Found makes an item part of the state that the sink's log has after the mark.
func (s *SinkState) Found(i *Item) error {
	s.told[i.Resource] = struct{}{}
	return s.Fold(i, s)
}

// Untold takes back what Told noted of an item that went to disk.
func (s *SinkState) Untold(i *Item, was Row) error {
	s.told[i.Resource] = struct{}{}
	return s.Untell(i, was, s)
}

// Row is what was saved or applied last of the object.
func (s *SinkState) Row(of Object) (Row, error) {
	if row, is := s.pending[of]; is {
		return row.Row, nil
	}
	return s.SavedRow(of)
}

// SavedRow is what was saved last of the object. It may be called from any goroutine.
func (s *SinkState) SavedRow(of Object) (Row, error) {
	for _, table := range []byte{tableRow, tableGrave} {
		value, closer, err := s.db.view(rowKey(nil, table, s.Name, of))
		if err != nil {
			return Row{}, err
		}
		if closer == nil {
			continue
		}
		row, err := parseRow(value)
		if closed := closer.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return Row{}, s.db.badValue(of.Resource+" "+of.Key.String()+" of sink "+s.Name, err)
		}
		row.Gone = table == tableGrave
		return row, nil
	}
	return Row{}, nil
}

// Put is Rows'.
func (s *SinkState) Put(of Object, row Row) error {
	_, buried := s.graves[of.Resource][of]
	s.pending[of] = applied{row, buried || s.pending[of].buried}
	if row.Gone {
		s.bury(of, row.At)
	} else {
		delete(s.graves[of.Resource], of)
	}
	return nil
}

// Passed is Rows'.
func (s *SinkState) Passed(resource, namespace string, upTo Point, named func(string) bool) error {
	for of, at := range s.graves[resource] {
		mine := of.Key.Namespace == namespace || namespace == Others && !named(of.Key.Namespace)
		if mine && !at.After(upTo) {
			s.pending[of] = applied{buried: true}
			delete(s.graves[resource], of)
		}
	}
	return nil
}

// Spools are the chunks that go to disk with a save, by the name of the sink, and the extents that its spool has then.
type Spools struct {
	Chunks  map[string][]fifo.Chunk
	Extents map[string]fifo.Spool
}

// KeptObject is an object as it was told last, which is kept to be the Before of what follows; without an Object
// nothing is kept of it any more.
type KeptObject struct {
	Stream  string
	Key     change.Key
	UID     string
	Version string
	Object  []byte
}

// SaveSinks makes what was applied to the states durable, all of it or nothing (I5). After an error it can be called
// again.
func (s *Store) SaveSinks(states []*SinkState, spools Spools, kept []KeptObject) error {
	err := s.write(func(r *rows) error {
		for _, state := range states {
			if err := state.fill(r); err != nil {
				return err
			}
		}
		for i := range kept {
			kept[i].fill(r)
		}
		s.spools.put(r, spools.Chunks, spools.Extents)
		return nil
	})
	if err != nil {
		return err
	}
	for _, state := range states {
		state.settled()
	}
	if len(spools.Extents) == 0 {
		return nil
	}
	return s.reclaim(spools.Chunks, spools.Extents)
}

// Recall notes that the sink's log has lost records: see Saved.Recall. Where the log is read whole then, nothing is known
// of the sink until that is done, and what is on disk for it is gone: the comparison finds it.
func (s *Store) Recall(state *SinkState, whole bool) error {
	state.Saved.Recall(whole)
	if whole {
		clear(state.pending)
		clear(state.graves)
		state.OnDisk = false
	}
	for resource := range state.Places {
		state.told[resource] = struct{}{}
	}
	err := s.write(func(r *rows) error {
		if whole {
			for _, table := range []byte{tableRow, tableGrave, tableSpool} {
				r.removeAll(sinkPrefix(table, state.Name))
			}
			r.remove(spooledKey(state.Name))
		}
		return state.fill(r)
	})
	if err == nil {
		state.settled()
	}
	return err
}

func (k *KeptObject) fill(r *rows) {
	r.key = appendKey(append(r.key[:0], streamPrefix(tableObject, k.Stream)...), k.Key)
	if k.Object == nil {
		r.remove(r.key)
		return
	}
	r.value = appendImage(r.value[:0], k.UID+"\n"+k.Version, k.Object)
	r.set(r.key, r.value)
}

// fill writes what was applied since the last save.
func (s *SinkState) fill(r *rows) error {
	for resource := range s.told {
		if err := s.Settle(resource, s); err != nil {
			return err
		}
		s.fillPlaces(r, resource)
	}
	for of, row := range s.pending {
		r.key = rowKey(r.key[:0], tableRow, s.Name, of)
		if row.Exists() {
			r.value = appendRow(r.value[:0], row.Row)
			r.set(r.key, r.value)
		} else {
			r.remove(r.key)
		}
		r.key = rowKey(r.key[:0], tableGrave, s.Name, of)
		switch {
		case row.Gone:
			r.value = appendRow(r.value[:0], row.Row)
			r.set(r.key, r.value)
		case row.buried:
			r.remove(r.key)
		}
	}
	if s.Mark != s.mark {
		r.set(markKey(s.Name), []byte(s.Mark))
	}
	return nil
}

// fillPlaces writes those of the resource that are others than the saved ones.
func (s *SinkState) fillPlaces(r *rows, resource string) {
	for namespace, place := range s.Places[resource] {
		if saved, is := s.places[resource][namespace]; !is || saved != place {
			r.set(placeKey(s.Name, resource, namespace), appendPlace(nil, place))
		}
	}
	for namespace := range s.places[resource] {
		if _, is := s.Places[resource][namespace]; !is {
			r.remove(placeKey(s.Name, resource, namespace))
		}
	}
}

// settled notes that all of it is saved.
func (s *SinkState) settled() {
	for resource := range s.told {
		s.places[resource] = maps.Clone(s.Places[resource])
	}
	s.mark = s.Mark
	clear(s.told)
	clear(s.pending)
}

// ForgetSink removes all that is known of the sink: it is new when it comes back.
func (s *Store) ForgetSink(name string) error {
	return s.write(func(r *rows) error {
		for _, table := range []byte{tableRow, tableGrave, tablePlace, tableSpool, tablePending, tableLimited} {
			r.removeAll(sinkPrefix(table, name))
		}
		for _, key := range [][]byte{markKey(name), spooledKey(name), heardKey(name)} {
			r.remove(key)
		}
		return nil
	})
}

// Objects yields the objects that the sink has of the resource, in the namespace or with Others in all, whose joined
// keys are after the given one, in the bytewise order of those keys, as they are saved when the loop begins. The loop
// may take its time, and may break.
func (s *SinkState) Objects(resource, namespace, behind string) iter.Seq2[SinkObject, error] {
	return func(yield func(SinkObject, error) bool) {
		prefix := resourcePrefix(nil, tableRow, s.Name, resource)
		from := prefix
		if namespace != Others {
			from = append(append(slices.Clone(prefix), namespace...), '/')
		}
		to := after(from)
		if behind != "" {
			from = append(append(slices.Clone(prefix), behind...), 0)
		}
		view := s.db.db.NewSnapshot()
		defer func() { _ = view.Close() }() // it never fails
		chunk := make([]SinkObject, 0, scanChunk)
		part := &keyRange{prefix: len(prefix), from: from, to: to}
		for part.from != nil {
			var err error
			if chunk, err = s.readRows(view, part, chunk[:0]); err != nil {
				yield(SinkObject{}, err)
				return
			}
			for _, row := range chunk {
				if row.Of.Resource = resource; !yield(row, nil) {
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
func (s *SinkState) readRows(view pebble.Reader, part *keyRange, dst []SinkObject) ([]SinkObject, error) {
	iterator, err := view.NewIter(&pebble.IterOptions{LowerBound: part.from, UpperBound: part.to})
	if err != nil {
		return nil, s.db.failed("read", err)
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
		row.Row, bad = parseRow(iterator.Value())
		dst = append(dst, row)
	}
	if err := iterator.Close(); err != nil {
		return nil, s.db.failed("read", err)
	}
	if bad != nil {
		return nil, s.db.badValue("an object of sink "+s.Name, bad)
	}
	return dst, nil
}

// resourcePrefix is what the keys of the table begin with that are the sink's and of the resource.
func resourcePrefix(dst []byte, table byte, sinkName, resource string) []byte {
	dst = append(append(append(dst, table), sinkName...), terminator)
	return append(append(dst, resource...), terminator)
}

func rowKey(dst []byte, table byte, sinkName string, of Object) []byte {
	return appendKey(resourcePrefix(dst, table, sinkName, of.Resource), of.Key)
}

func placeKey(sinkName, resource, namespace string) []byte {
	return append(resourcePrefix(nil, tablePlace, sinkName, resource), namespace...)
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

// The flags of a place.
const (
	comparisonOver = 1 << iota
	comparisonFull
	comparisonLost
)

// appendPlace appends a place: flags, position, highest version, comparison.
func appendPlace(dst []byte, p Place) []byte {
	flags := byte(0)
	for flag, is := range map[byte]bool{
		comparisonOver: p.Comparison.Over, comparisonFull: p.Comparison.Full, comparisonLost: p.Comparison.Lost,
	} {
		if is {
			flags |= flag
		}
	}
	dst = append(dst, flags)
	for _, at := range []Point{p.At, p.High} {
		dst = appendText(binary.AppendUvarint(dst, uint64(at.History)), at.Version)
	}
	for _, text := range []string{p.Comparison.ID, p.Comparison.Namespace, string(p.Comparison.Reason), string(p.Asked), p.Selection} {
		dst = appendText(dst, text)
	}
	return dst
}

// parsePlace is the inverse of appendPlace.
func parsePlace(value []byte) (p Place, err error) {
	if len(value) == 0 || value[0] >= comparisonLost<<1 {
		return Place{}, errValue
	}
	flags, rest := value[0], value[1:]
	for _, at := range []*Point{&p.At, &p.High} {
		history, width := binary.Uvarint(rest)
		if width <= 0 {
			return Place{}, errValue
		}
		at.History = History(history)
		if at.Version, rest, err = cutText(rest[width:]); err != nil {
			return Place{}, err
		}
	}
	c := &p.Comparison
	c.Over, c.Full, c.Lost = flags&comparisonOver != 0, flags&comparisonFull != 0, flags&comparisonLost != 0
	for _, text := range []*string{&c.ID, &c.Namespace, (*string)(&c.Reason), (*string)(&p.Asked), &p.Selection} {
		if *text, rest, err = cutText(rest); err != nil {
			return Place{}, err
		}
	}
	if len(rest) > 0 {
		err = errValue
	}
	return p, err
}
