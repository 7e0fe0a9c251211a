package checkpoint

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// MaxRecords is the most records that one Batch should hold: a larger one costs many times as much, because Pebble
// makes it into a table of its own.
const MaxRecords = 8000

// Batch is what one Commit saves.
type Batch struct {
	// Records that are delivered: of each stream a contiguous prefix of what is not yet saved, in its order (I2).
	Records []*change.Record
	// Marks by the name of the sink, none newer than the records allow.
	Marks map[string]sink.Mark
}

// Commit saves the batch whole or not at all, and returns when it is durable (I5). It puts the records' objects into
// the inventory or takes them out, moves each stream to the position of its last record that has one, and replaces the
// marks. It returns a *FullError, with nothing changed, where the volume is nearly full.
func (s *Store) Commit(b Batch) error {
	return s.write(func(w *writer) error {
		for _, rec := range b.Records {
			if err := w.record(rec); err != nil {
				return err
			}
		}
		for name, mark := range b.Marks {
			if err := w.batch.Set(markKey(name), []byte(mark), nil); err != nil {
				return err
			}
		}
		return w.positions()
	})
}

// SetPosition overwrites the stream's position and nothing else.
func (s *Store) SetPosition(stream string, position change.Position) error {
	return s.write(func(w *writer) error {
		return w.batch.Set(positionKey(stream), appendPosition(nil, position), nil)
	})
}

// Fold adds the objects that a sink was given before a crash, and that the saved inventory does not know, with an
// unknown resourceVersion: the next reconcile sends them again or finds them deleted. An object that the inventory
// knows under the same uid is left as it is.
func (s *Store) Fold(stream string, entries []change.Entry) error {
	return s.write(func(w *writer) error {
		for _, entry := range entries {
			known, found, err := s.Lookup(stream, entry.Key)
			if err != nil {
				return err
			}
			if found && known.UID == entry.UID {
				continue
			}
			w.key = appendKey(append(w.key[:0], inventoryPrefix(stream)...), entry.Key)
			w.value = appendEntry(w.value[:0], entry.UID, "")
			if err := w.batch.Set(w.key, w.value, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// DropStream forgets the stream's position and inventory.
func (s *Store) DropStream(stream string) error {
	return s.write(func(w *writer) error {
		if err := w.batch.Delete(positionKey(stream), nil); err != nil {
			return err
		}
		prefix := inventoryPrefix(stream)
		return w.batch.DeleteRange(prefix, after(prefix), nil)
	})
}

// Reset forgets everything: positions, inventory, marks and the cluster's identity.
func (s *Store) Reset() error {
	return s.write(func(w *writer) error {
		return w.batch.DeleteRange([]byte{tablesFirst}, []byte{tablesEnd}, nil)
	})
}

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
	w := &writer{batch: s.db.NewBatch(), byPointer: map[*change.Stream]*streamWrite{}, byName: map[string]*streamWrite{}}
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
	return nil
}

// writer fills one batch.
type writer struct {
	batch      *pebble.Batch
	byPointer  map[*change.Stream]*streamWrite
	byName     map[string]*streamWrite
	key, value []byte // reused: the batch copies them
}

// streamWrite is what a batch has of one stream.
type streamWrite struct {
	prefix   []byte // of its inventory
	position change.Position
}

// record applies one record to the inventory and notes its position.
func (w *writer) record(rec *change.Record) error {
	stream := w.stream(rec.Stream)
	if rec.Position != (change.Position{}) {
		stream.position = rec.Position
	}
	if !changesInventory(rec) {
		return nil
	}
	w.key = appendKey(append(w.key[:0], stream.prefix...), rec.Key)
	if rec.Op == change.Deleted {
		return w.batch.Delete(w.key, nil)
	}
	w.value = appendEntry(w.value[:0], rec.UID, rec.ResourceVersion)
	return w.batch.Set(w.key, w.value, nil)
}

// changesInventory says whether the sinks have something else after the record than before. A snapshot that one sink
// asked for tells nothing of the others.
func changesInventory(rec *change.Record) bool {
	return rec.Op.OfObject() && (rec.Op != change.Sync || rec.Sink == "")
}

// positions writes the last position of each stream.
func (w *writer) positions() error {
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
		w.byName[name] = &streamWrite{prefix: inventoryPrefix(name)}
	}
	w.byPointer[stream] = w.byName[name]
	return w.byName[name]
}
