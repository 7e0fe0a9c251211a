package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// stranded are the objects that a sink's log shows though they are gone: the log has lost its end, and their deletes
// with it. Neither the inventory knows them, nor will the watch tell of them again. The next full snapshot does.
//
// They are found by reading the whole log. Only they are kept, and of the past no more than existed at one time.
type stranded struct {
	streams    func() []*change.Stream // those that there are now
	store      *checkpoint.Store
	foreign    func(change.ID) (bool, error)
	clusterUID string

	mu      sync.Mutex                               // guards the following: the listener tells, sources ask
	objects map[string]map[change.Key][]change.Entry // by stream, none that is empty; several of one key may be missed
	ended   map[string]struct{}                      // uids of which the listener itself tells, and the state does not know
}

// recall reads the sink's log. A sink that cannot do that keeps what it has.
func (l *listener) recall(ctx context.Context) error {
	log, ok := l.Target.(sink.Recaller)
	if !ok {
		return nil
	}
	l.stranded.forget()
	if err := log.Recall(ctx, l.stranded.note); err != nil {
		return fmt.Errorf("read what the log of sink %s still holds: %w", l.Name, err)
	}
	return l.recallSpool()
}

// recallSpool forgets the objects whose deletes are on disk: the sink will be told. It reads what the state has now,
// which may be more than the listener was told of: the deletes are saved with the positions that made their objects
// stranded.
func (l *listener) recallSpool() error {
	if l.stranded.none() {
		return nil
	}
	return l.eachSpooled(func(rec *change.Record) {
		if rec.Op == change.Deleted {
			l.stranded.told(rec)
		}
	})
}

// eachSpooled gives each the records on disk that are not delivered.
func (l *listener) eachSpooled(each func(rec *change.Record)) error {
	spool, err := l.store.Spool(l.Name)
	if err != nil {
		return err
	}
	l.mu.Lock()
	for part, at := range l.spool.cursor {
		spool[part].First = max(spool[part].First, at) // what is before was delivered, and lost
	}
	l.mu.Unlock()
	most := batchLimit()
	for !spool.Empty() {
		records, err := l.store.ReadSpool(l.Name, &spool, most.Bytes, most.Records)
		if err != nil {
			return err
		}
		for _, rec := range records {
			if heir := streamOf(l.delivered.present(), rec.ID(l.clusterUID)); heir != nil {
				rec.Stream = heir
			}
			each(rec)
		}
	}
	return nil
}

// owesLost says whether the sink's log once lost records, and the snapshot after that is not complete.
func (r *run) owesLost(name string) (bool, error) {
	debts, err := r.Store.Debts()
	return slices.ContainsFunc(debts, func(d checkpoint.Debt) bool { return d.Sink == name && d.Reason == change.Lost }), err
}

func (s *stranded) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects = nil
}

func (s *stranded) none() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.objects) == 0
}

// note takes the ids of the log, oldest first.
func (s *stranded) note(text string) error {
	id, err := change.ParseID(text)
	if err != nil || !id.Op.OfObject() {
		return nil
	}
	if theirs, err := s.foreign(id); err != nil || theirs {
		return err
	}
	of := streamOf(s.streams(), id)
	if of == nil {
		return nil
	}
	stream, gone := of.String(), false
	if id.Op != change.Deleted {
		if gone, err = s.gone(id, stream); err != nil {
			return fmt.Errorf("find %s in the saved state: %w", id, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case id.Op == change.Deleted:
		s.drop(stream, id.Key, id.UID)
	case gone:
		delete(s.objects[stream], id.Key) // in the log, it has taken the place of another
		s.add(stream, change.Entry{Key: id.Key, UID: id.UID, ResourceVersion: id.ResourceVersion})
	}
	return nil
}

// gone says whether the saved state is behind the record, and does not have its object. What lies behind the position
// comes again, and so does all of an initial snapshot.
func (s *stranded) gone(id change.ID, stream string) (bool, error) {
	position, found, err := s.store.Position(stream)
	here := change.Record{Stream: &change.Stream{}, Epoch: position.Epoch}
	if err != nil || !found || position.Initial() || id.Cluster == here.ID(s.clusterUID).Cluster && change.CompareVersions(id.ResourceVersion, position.ResourceVersion) > 0 {
		return false, err
	}
	entry, found, err := s.store.Lookup(stream, id.Key)
	return !found || entry.UID != id.UID, err
}

// add is for a caller that holds mu.
func (s *stranded) add(stream string, entry change.Entry) {
	if s.objects == nil {
		s.objects = map[string]map[change.Key][]change.Entry{}
	}
	if s.objects[stream] == nil {
		s.objects[stream] = map[change.Key][]change.Entry{}
	}
	s.objects[stream][entry.Key] = append(s.objects[stream][entry.Key], entry)
}

// drop is for a caller that holds mu.
func (s *stranded) drop(stream string, key change.Key, uid string) {
	byKey := s.objects[stream]
	entries, found := byKey[key]
	if !found {
		return
	}
	byKey[key] = slices.DeleteFunc(entries, func(e change.Entry) bool { return e.UID == uid })
	if len(byKey[key]) == 0 {
		delete(byKey, key)
	}
	if len(byKey) == 0 {
		delete(s.objects, stream)
	}
}

// of are those of the stream.
func (s *stranded) of(stream string) []change.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(slices.Collect(maps.Values(s.objects[stream]))...)
}

// told forgets what a record in line tells the sink, however much later: another snapshot must not tell it once more
// (I3).
func (s *stranded) told(rec *change.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(rec.Stream.String(), rec.Key, rec.UID)
}

// tells is told of a delete that the listener makes itself, until the state knows of it.
func (s *stranded) tells(rec *change.Record) {
	s.told(rec)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.ended = map[string]struct{}{}
	}
	s.ended[rec.UID] = struct{}{}
}

// saved notes that the state knows that the sink was told of the object.
func (s *stranded) saved(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ended, uid)
}

// taken forgets what is being written to the sink, which an earlier process may have left on disk. The end of the
// snapshot that was owed is the end of everything.
func (s *stranded) taken(batch []*change.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.objects) == 0 {
		return
	}
	for _, rec := range batch {
		switch stream := rec.Stream.String(); {
		case rec.Op == change.Deleted:
			s.drop(stream, rec.Key, rec.UID)
		case rec.Op == change.SnapshotEnd && rec.Sink != "" && rec.Snapshot.Reason == change.Lost:
			delete(s.objects, stream)
		}
	}
}
