package checkpoint

import (
	"errors"
	"maps"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// MaxRecords is the most records that one Batch should hold, of whose objects nothing is kept (see MaxObjects): a
// larger one costs many times as much, because Pebble makes it into a table of its own.
const MaxRecords = 8000

// Batch is what one Commit saves.
type Batch struct {
	// Records that are delivered: of each stream a contiguous prefix of what is not yet saved, in its order (I2).
	Records []*change.Record
	// Marks by the name of the sink, none newer than the records allow.
	Marks map[string]sink.Mark
	// Carried is by the name of the sink what its mark carries, which is in Marks. An empty one forgets that of an
	// earlier mark.
	Carried map[string]Carried
	// Debts are snapshots that are owed from now on, in the Generation that they come with or a newer one, whatever
	// After they come with: one that is owed already is owed anew, from its beginning. One is paid by the SnapshotEnd
	// record of its sink, stream, reason and generation.
	Debts []Debt
	// Taken are the subscriptions that sinks have from now on, Left those that they no longer have, with their debts.
	Taken, Left []Subscription
	// Absent are the sinks that miss streams from the records behind this batch on, or from From, where that is set and
	// older. Returning is not read.
	Absent []Absence
	// Held is what the logs hold of sinks that come back.
	Held []Held
	// Chunks are spooled, and the spools of the sinks by name are then as the extents say: what is not in them is gone.
	Chunks []Chunk
	Spools map[string]fifo.Spool
	// Based are the positions that the logs of sinks are to be compared with, by the sink's subscription; Compared are
	// sinks for which that is done.
	Based    map[Subscription]change.Position
	Compared []string
	// Resources are what streams are of, for when nobody serves them any more.
	Resources []change.Stream
	// Over are streams that end here: position, inventory and resource are forgotten, but for the resource where
	// records of them may be OnDisk for a sink.
	Over   []string
	OnDisk bool
}

// Subscription is a stream that a sink is given from its first record on: whoever has it needs no snapshot.
type Subscription struct {
	Sink   string
	Stream string
}

// Commit saves the batch whole or not at all, and returns when it is durable (I5). It puts the records' objects into
// the inventory or takes them out, moves each stream to the position of its last record that has one, and replaces the
// marks. It returns a *disk.FullError, with nothing changed, where the volume is nearly full.
func (s *Store) Commit(b Batch) error {
	err := s.write(func(w *writer) error { return w.apply(&b) })
	if err != nil {
		return err
	}
	if len(b.Spools) == 0 {
		return nil
	}
	return s.reclaim(&b)
}

// apply writes the parts of the batch, in the order in which they build on each other.
func (w *writer) apply(b *Batch) error {
	steps := []func(*Batch) error{w.records, w.marks, w.carried, w.subscriptions, w.absent, w.resources, w.owed, w.spools, w.replayBases, w.positions, w.over}
	for _, step := range steps {
		if err := step(b); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) records(b *Batch) error {
	for _, rec := range b.Records {
		if err := w.record(rec); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) marks(b *Batch) error {
	for name, mark := range b.Marks {
		if err := w.batch.Set(markKey(name), []byte(mark), nil); err != nil {
			return err
		}
	}
	return nil
}

// owed notes what is owed from now on, and forgets what the records of the batch have settled.
func (w *writer) owed(b *Batch) error {
	for _, debt := range b.Debts {
		if err := w.owe(debt); err != nil {
			return err
		}
	}
	return w.settleDebts()
}

// over forgets the streams that are over.
func (w *writer) over(b *Batch) error {
	for _, stream := range b.Over {
		if err := w.drop(stream); err != nil {
			return err
		}
		if b.OnDisk {
			continue
		}
		if err := w.batch.Delete(resourceKey(stream), nil); err != nil {
			return err
		}
	}
	return nil
}

// SetPosition overwrites the stream's position and nothing else.
func (s *Store) SetPosition(stream string, position change.Position) error {
	return s.write(func(w *writer) error {
		return w.batch.Set(positionKey(stream), appendPosition(nil, position), nil)
	})
}

// Retain forgets all sinks but the named ones: one that comes back later is new.
func (s *Store) Retain(sinks []string) error {
	known, err := s.Sinks()
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(known, func(name string) bool { return slices.Contains(sinks, name) })
	err = s.write(func(w *writer) error {
		for _, name := range left {
			if err := w.forget(name); err != nil {
				return err
			}
		}
		return nil
	})
	for _, name := range left {
		prefix := sinkPrefix(tableSpool, name)
		err = errors.Join(err, s.excise(prefix, after(prefix)))
	}
	return err
}

// Sinks are the names of the sinks that the state knows anything of, sorted.
func (s *Store) Sinks() ([]string, error) {
	marks, err := s.Marks()
	if err != nil {
		return nil, err
	}
	subscriptions, err := s.Subscriptions()
	for subscription := range subscriptions {
		marks[subscription.Sink] = ""
	}
	return slices.Sorted(maps.Keys(marks)), err
}

// forget removes all that is known of a sink.
func (w *writer) forget(sinkName string) error {
	w.absentChanged = true
	for _, table := range []byte{tableSubscription, tableDebt, tableSpool, tableReplayBase, tableAbsent, tableMissed, tableFresh} {
		prefix := sinkPrefix(table, sinkName)
		if err := w.batch.DeleteRange(prefix, after(prefix), nil); err != nil {
			return err
		}
	}
	for _, key := range [][]byte{spooledKey(sinkName), carriedKey(sinkName)} {
		if err := w.batch.Delete(key, nil); err != nil {
			return err
		}
	}
	return w.batch.Delete(markKey(sinkName), nil)
}

// subscriptions notes which streams sinks take from now on, and which no longer.
func (w *writer) subscriptions(b *Batch) error {
	for _, subscription := range b.Taken {
		if err := w.batch.Set(subscriptionKey(subscription), nil, nil); err != nil {
			return err
		}
	}
	for _, subscription := range b.Left {
		if err := w.endAbsence(subscription); err != nil {
			return err
		}
		debts := append(append(sinkPrefix(tableDebt, subscription.Sink), subscription.Stream...), terminator)
		if err := w.batch.DeleteRange(debts, after(debts), nil); err != nil {
			return err
		}
		if err := w.batch.Delete(subscriptionKey(subscription), nil); err != nil {
			return err
		}
	}
	return nil
}

// DropStream forgets the stream's position and inventory, and what is kept of its objects.
func (s *Store) DropStream(stream string) error {
	return s.write(func(w *writer) error { return w.drop(stream) })
}

func (w *writer) drop(stream string) error {
	if err := w.dropObjects(stream); err != nil {
		return err
	}
	if err := w.batch.Delete(positionKey(stream), nil); err != nil {
		return err
	}
	prefix := inventoryPrefix(stream)
	return w.batch.DeleteRange(prefix, after(prefix), nil)
}

// Reset forgets everything but the format: positions, inventory, marks, debts and the cluster's identity.
func (s *Store) Reset() error {
	return s.write(func(w *writer) error {
		w.absentChanged = true
		return w.batch.DeleteRange([]byte{tablesFirst}, []byte{tablesEnd}, nil)
	})
}
