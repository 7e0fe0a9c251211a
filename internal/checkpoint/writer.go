package checkpoint

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kubecdc/kubecdc/internal/change"
)

// write makes what fill writes durable as one batch. A batch with nothing in it costs nothing.
func (s *Store) write(fill func(*writer) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("commit state %s: it is closed", s.dir)
	}
	if damage := s.damage.Load(); damage != nil {
		return damage
	}
	w := &writer{store: s, batch: s.db.NewBatch(), debts: map[Debt]*debtWrite{}, byPointer: map[*change.Stream]*streamWrite{}, byName: map[string]*streamWrite{}}
	defer func() { _ = w.batch.Close() }() // it only gives memory back
	if err := fill(w); err != nil {
		return err
	}
	if w.batch.Empty() {
		return nil
	}
	if err := s.space.check("commit"); err != nil {
		return err
	}
	if err := w.batch.Commit(pebble.Sync); err != nil {
		return s.failed("commit", err)
	}
	if w.absentChanged {
		return s.loadAbsences()
	}
	return nil
}

// writer fills one batch.
type writer struct {
	store     *Store
	batch     *pebble.Batch
	debts     map[Debt]*debtWrite // by what they are the same by: no generation, no cursor
	byPointer map[*change.Stream]*streamWrite
	byName    map[string]*streamWrite

	absentChanged bool // the store has other absences after the batch

	key, value []byte // reused: the batch copies them
}

// streamWrite is what a batch has of one stream.
type streamWrite struct {
	name     string
	prefix   []byte // of its inventory
	objects  []byte // of what is kept of them
	position change.Position
	absent   *absences // nil until they are asked for
}

// record applies one record to the inventory and notes its position.
func (w *writer) record(rec *change.Record) error {
	stream := w.stream(rec.Stream)
	if rec.Position != (change.Position{}) {
		stream.position = rec.Position
	}
	if len(w.store.absent[stream.name]) > 0 {
		if err := w.miss(rec, stream); err != nil {
			return err
		}
	}
	if rec.Sink != "" && rec.Snapshot != nil {
		return w.towards(rec, stream)
	}
	if !changesInventory(rec) {
		return nil
	}
	if err := w.keep(rec, stream); err != nil {
		return err
	}
	w.key = appendKey(append(w.key[:0], stream.prefix...), rec.Key)
	if rec.Op == change.Deleted {
		return w.batch.Delete(w.key, nil)
	}
	w.value = appendEntry(w.value[:0], rec.UID, rec.ResourceVersion)
	return w.batch.Set(w.key, w.value, nil)
}

// changesInventory says whether the sinks have something else after the record than before. A record that is for one
// sink tells nothing of the others.
func changesInventory(rec *change.Record) bool { return rec.Op.OfObject() && rec.Sink == "" }

// positions writes the last position of each stream.
func (w *writer) positions(*Batch) error {
	for name, stream := range w.byName {
		if stream.position == (change.Position{}) {
			continue
		}
		w.value = appendPosition(w.value[:0], stream.position)
		if err := w.batch.Set(positionKey(name), w.value, nil); err != nil {
			return err
		}
	}
	return nil
}

// stream finds what the batch has of the stream. Nearly always all records of a stream share the pointer, which saves
// making the name again.
func (w *writer) stream(stream *change.Stream) *streamWrite {
	if known := w.byPointer[stream]; known != nil {
		return known
	}
	name := stream.String()
	if w.byName[name] == nil {
		w.byName[name] = &streamWrite{name: name, prefix: inventoryPrefix(name), objects: streamPrefix(tableObject, name)}
	}
	w.byPointer[stream] = w.byName[name]
	return w.byName[name]
}
