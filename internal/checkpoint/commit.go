package checkpoint

import (
	"errors"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Commit saves the batch whole or not at all, and returns when it is durable (I5). It puts the records' objects into
// the inventory or takes them out, moves each stream to the position of its last record that has one, and replaces the
// marks. It returns a *disk.FullError, with nothing changed, where the volume is nearly full.
func (s *Store) Commit(b Batch) error {
	err := s.edit(func(w *writer) error { return w.apply(&b) })
	if err != nil {
		return err
	}
	if len(b.Spools) == 0 {
		return nil
	}
	return s.reclaim(b.Chunks, b.Spools)
}

// Retain forgets all sinks but the named ones: one that comes back later is new.
func (s *Store) Retain(sinks []string) error {
	known, err := s.Sinks()
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(known, func(name string) bool { return slices.Contains(sinks, name) })
	err = s.edit(func(w *writer) error {
		for _, name := range left {
			w.forget(name)
		}
		return nil
	})
	for _, name := range left {
		prefix := sinkPrefix(tableSpool, name)
		err = errors.Join(err, s.excise(prefix, after(prefix)))
	}
	return err
}

// edit makes what fill writes durable, whole or not at all.
func (s *Store) edit(fill func(*writer) error) error {
	return s.write(func(r *rows) error {
		pendingSnapshots := &pendingBook{db: s.database, to: r, known: map[PendingSnapshot]*bookedPending{}}
		return fill(&writer{
			rows: r, db: s.database, pendingSnapshots: pendingSnapshots, carried: s.sinks, spools: &s.spools,
			absences:  &absenceBook{saved: &s.absences, to: r, pendingSnapshots: pendingSnapshots, streams: map[string]*streamAbsences{}},
			byPointer: map[*change.Stream]*writtenStream{}, byName: map[string]*writtenStream{},
		})
	})
}
