package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Absence is that a sink is not given a stream which it has a subscription to: it failed for good and was let go, is
// not configured, or does not take the stream now. Its mark stays, and what it misses of deletes is kept, since nobody
// else would remember that it has those objects. It costs what existed when it left, at most, whatever is made and
// deleted meanwhile.
//
// It ends with the stream's full snapshot of reason absent: the sink misses nothing behind the gap of that, and
// everything that it has missed was told when the first object of the snapshot, or its end, is delivered.
type Absence struct {
	Subscription
	From      change.Position // of the stream when the sink left: what is below it, the sink has or has on disk
	Since     time.Time       // when it left
	Returning bool            // it has the gap, and misses nothing any more
}

// Held is what a sink's log holds of one object behind the mark, when the sink comes back: whether it exists there.
type Held struct {
	Subscription
	Entry  change.Entry
	Exists bool
	// Ahead is the epoch, as of change.ID's Cluster, whose position is still to reach the entry's version, "" where it
	// has: the log holds the object unless it is known to hold its delete.
	Ahead string
}

// Absences are all, sorted by sink and stream.
func (s *Store) Absences() ([]Absence, error) {
	var all []Absence
	err := s.each([]byte{tableAbsent}, func(key, value []byte) error {
		subscription, ok := parseSubscription(key)
		if !ok {
			return s.badValue("an absence", errValue)
		}
		absence, err := parseAbsence(value)
		if err != nil {
			return s.badValue("an absence", err)
		}
		absence.Subscription = subscription
		all = append(all, absence)
		return nil
	})
	return all, err
}

// Missed are the objects of the stream that the sink, which is absent, has and which are gone.
func (s *Store) Missed(subscription Subscription, clusterUID string) ([]change.Entry, error) {
	position, _, err := s.Position(subscription.Stream)
	if err != nil {
		return nil, err
	}
	here := (&change.Record{Stream: &change.Stream{}, Epoch: position.Epoch}).ID(clusterUID).Cluster
	var gone []change.Entry
	prefix := objectPrefix(tableMissed, subscription)
	err = s.each(prefix, func(key, value []byte) error {
		ahead, rest, err := cutText(value)
		if err != nil {
			return s.badValue("a missed delete", err)
		}
		joined, _, _ := bytes.Cut(key[len(prefix):], []byte{terminator})
		entry := change.Entry{Key: change.ParseKey(string(joined))}
		if entry.UID, entry.ResourceVersion, err = parseEntry(rest); err != nil {
			return s.badValue("a missed delete", err)
		}
		if ahead == told || ahead != "" && ahead == here && change.CompareVersions(entry.ResourceVersion, position.ResourceVersion) > 0 {
			return nil // it has the delete, or the record comes again
		}
		known, found, err := s.Lookup(subscription.Stream, entry.Key)
		if err == nil && (!found || known.UID != entry.UID) {
			gone = append(gone, entry)
		}
		return err
	})
	return gone, err
}

// absences is what a batch knows of those of one stream, by place in the store's.
type absences struct {
	all   []*Absence
	fresh map[string]bool             // joined keys, behind the sink and a terminator: whether the sink never had the object
	now   map[change.Key]change.Entry // the objects that the batch has changed, without a uid where they are gone
}

// loadAbsences remembers them, since each record is to be compared with them; the caller holds mu, or is the only one.
func (s *Store) loadAbsences() error {
	all, err := s.Absences()
	s.absent = map[string][]Absence{}
	for _, a := range all {
		s.absent[a.Stream] = append(s.absent[a.Stream], a)
	}
	return err
}

// absent notes who is absent from now on. Who was so before stays so from then, and who was returning has to do so
// again.
func (w *writer) absent(b *Batch) error {
	for _, a := range b.Absent {
		lacks := a.From
		if i := slices.IndexFunc(w.store.absent[a.Stream], func(o Absence) bool { return o.Sink == a.Sink }); i >= 0 {
			a.From, a.Since = w.store.absent[a.Stream][i].From, w.store.absent[a.Stream][i].Since
		} else {
			position, _, err := w.store.Position(a.Stream)
			if err != nil {
				return err
			}
			if a.From = (change.Position{}); !position.Initial() { // of what that says the sinks have a part
				a.From = position
			}
		}
		if lacks != (change.Position{}) && change.CompareVersions(lacks.ResourceVersion, a.From.ResourceVersion) < 0 {
			a.From = lacks
		}
		a.Returning = false
		if err := w.setAbsence(&a); err != nil {
			return err
		}
	}
	return w.held(b)
}

func (w *writer) setAbsence(a *Absence) error {
	w.absentChanged = true
	return w.batch.Set(absentKey(a.Subscription), appendAbsence(nil, a), nil)
}

// held notes what logs hold of sinks that come back.
func (w *writer) held(b *Batch) error {
	for _, h := range b.Held {
		misses := func(a Absence) bool { return a.Subscription == h.Subscription }
		if !slices.ContainsFunc(w.store.absent[h.Stream], misses) && !slices.ContainsFunc(b.Absent, misses) {
			continue // it misses nothing
		}
		key, ahead := missedKey(h.Subscription, h.Entry.Key, h.Entry.UID), h.Ahead
		switch {
		case !h.Exists:
			ahead = told
		case ahead == "":
			if err := w.missDelete(&Absence{Subscription: h.Subscription}, h.Entry); err != nil {
				return err
			}
			continue
		}
		if err := w.batch.Set(key, appendEntry(appendText(nil, ahead), h.Entry.UID, h.Entry.ResourceVersion), nil); err != nil {
			return err
		}
	}
	return nil
}

// told, in the place of an epoch, is an object of which the sink's log says that it is gone, whenever the others hear
// of it.
const told = "-"

// holding is what is noted of an object that the sink has: the version in its log, or that it was told of the end.
func (w *writer) holding(key []byte) (version string, wasTold bool, err error) {
	value, found, err := w.store.get(key)
	if err != nil || !found {
		return "", false, err
	}
	ahead, rest, err := cutText(value)
	if err == nil {
		_, version, err = parseEntry(rest)
	}
	if err != nil {
		return "", false, w.store.badValue("a missed delete", err)
	}
	return version, ahead == told, nil
}

// absencesOf are those of the stream as the batch has changed them so far.
func (w *writer) absencesOf(stream *streamWrite) []*Absence {
	if stream.absent == nil {
		stream.absent = &absences{fresh: map[string]bool{}, now: map[change.Key]change.Entry{}}
		for _, a := range w.store.absent[stream.name] {
			stream.absent.all = append(stream.absent.all, &a)
		}
	}
	return stream.absent.all
}

// miss notes what absent sinks miss with the record.
func (w *writer) miss(rec *change.Record, stream *streamWrite) error {
	for i, a := range w.absencesOf(stream) {
		if a == nil || rec.Sink != "" && rec.Sink != a.Sink {
			continue
		}
		var err error
		switch {
		case a.Returning:
			err = w.returned(rec, stream, i)
		case isReturn(rec):
			err = w.returns(rec, a)
		default:
			err = w.missed(rec, stream, a)
		}
		if err != nil {
			return err
		}
	}
	stream.absent.note(rec)
	return nil
}

// isReturn says whether the record is the first that a sink is given of the stream when it comes back.
func isReturn(rec *change.Record) bool {
	return rec.Op == change.Gap && rec.Sink != "" && rec.Snapshot != nil && rec.Snapshot.Reason == change.Absent
}

// returns ends the missing, unless the snapshot is of a time before the sink left again.
func (w *writer) returns(rec *change.Record, a *Absence) error {
	debt, err := w.debt(a.Stream, a.Sink, change.Absent)
	if err != nil || !debt.exists || debt.owed.Generation != rec.Snapshot.Generation {
		return err
	}
	a.Returning = true
	fresh := objectPrefix(tableFresh, a.Subscription)
	return errors.Join(w.setAbsence(a), w.batch.DeleteRange(fresh, after(fresh), nil))
}

// returned notes what a sink was told that comes back.
func (w *writer) returned(rec *change.Record, stream *streamWrite, at int) error {
	a := stream.absent.all[at]
	switch {
	case rec.Op == change.Deleted: // also one for all: the sink's log may have held the object
		return w.batch.Delete(missedKey(a.Subscription, rec.Key, rec.UID), nil)
	case rec.Sink == "":
		return nil
	case rec.Snapshot == nil || rec.Snapshot.Reason != change.Absent || rec.Op != change.Sync && rec.Op != change.SnapshotEnd:
		return nil
	}
	stream.absent.all[at] = nil
	return w.endAbsence(a.Subscription)
}

func (w *writer) endAbsence(subscription Subscription) error {
	w.absentChanged = true
	if err := w.batch.Delete(absentKey(subscription), nil); err != nil {
		return err
	}
	for _, table := range []byte{tableMissed, tableFresh} {
		prefix := objectPrefix(table, subscription)
		if err := w.batch.DeleteRange(prefix, after(prefix), nil); err != nil {
			return err
		}
	}
	return nil
}

// missed notes what the record says of the objects that the sink has. One that it never had needs no delete.
func (w *writer) missed(rec *change.Record, stream *streamWrite, a *Absence) error {
	switch {
	case !rec.Op.OfObject():
		return nil
	case rec.Op == change.Deleted && rec.Sink != "": // of what only the sink had
		return w.missDelete(a, change.Entry{Key: rec.Key, UID: rec.UID, ResourceVersion: rec.ResourceVersion})
	case rec.Sink != "":
		return nil
	}
	known, had, err := w.before(rec.Key, stream)
	if err != nil || had && known.UID == rec.UID && rec.Op != change.Deleted {
		return err
	}
	fresh := appendKey(objectPrefix(tableFresh, a.Subscription), rec.Key)
	never, err := w.isFresh(fresh, stream)
	if err != nil {
		return err
	}
	if had && !never && (known.UID == rec.UID || rec.Op != change.Deleted) { // nobody may have seen the end of the one before
		if err := w.missDelete(a, known); err != nil {
			return err
		}
	}
	if rec.Op == change.Deleted {
		stream.absent.fresh[string(fresh)] = false
		return w.batch.Delete(fresh, nil)
	}
	stream.absent.fresh[string(fresh)] = true
	return w.batch.Set(fresh, nil, nil)
}

// missDelete notes that the sink is to be told that the object is gone, unless its log has that. The version is one
// before the object's end: what the sink is told later must not have the id of the delete, which has the object with
// it (I8). It is not one before what the sink's log has (I3).
func (w *writer) missDelete(a *Absence, gone change.Entry) error {
	key := missedKey(a.Subscription, gone.Key, gone.UID)
	version, wasTold, err := w.holding(key)
	if err != nil || wasTold {
		return err
	}
	if change.CompareVersions(version, gone.ResourceVersion) > 0 {
		gone.ResourceVersion = version
	}
	return w.batch.Set(key, appendEntry(appendText(nil, ""), gone.UID, gone.ResourceVersion), nil)
}

// before is the object that the stream has under the key, as the batch has changed it so far, false where there is
// none.
func (w *writer) before(key change.Key, stream *streamWrite) (change.Entry, bool, error) {
	if entry, changed := stream.absent.now[key]; changed {
		return entry, entry.UID != "", nil
	}
	return w.store.Lookup(stream.name, key)
}

// note remembers what the record, which all sinks are given, makes of the object.
func (a *absences) note(rec *change.Record) {
	switch {
	case len(a.all) == 0 || rec.Sink != "" || !rec.Op.OfObject():
	case rec.Op == change.Deleted:
		a.now[rec.Key] = change.Entry{}
	default:
		a.now[rec.Key] = change.Entry{Key: rec.Key, UID: rec.UID, ResourceVersion: rec.ResourceVersion}
	}
}

// isFresh says whether the object was made while the sink was absent.
func (w *writer) isFresh(key []byte, stream *streamWrite) (bool, error) {
	if fresh, known := stream.absent.fresh[string(key)]; known {
		return fresh, nil
	}
	_, closer, err := w.store.db.Get(key)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return false, nil
	case err != nil:
		return false, w.store.failed("read", err)
	}
	return true, closer.Close()
}

// isAbsent says whether the sink misses the record.
func (w *writer) isAbsent(sinkName string, stream *streamWrite) bool {
	return slices.ContainsFunc(w.absencesOf(stream), func(a *Absence) bool { return a != nil && a.Sink == sinkName && !a.Returning })
}

func absentKey(s Subscription) []byte { return append(sinkPrefix(tableAbsent, s.Sink), s.Stream...) }

// missedKey has the uid in it: of one key, the log may tell of one object, and the queue on disk of another.
func missedKey(s Subscription, key change.Key, uid string) []byte {
	return append(append(appendKey(objectPrefix(tableMissed, s), key), terminator), uid...)
}

// objectPrefix is what the keys of a table begin with that belong to the sink's objects of the stream.
func objectPrefix(table byte, s Subscription) []byte {
	return append(sinkPrefix(table, s.Sink), streamPrefix(0, s.Stream)[1:]...)
}

// appendAbsence appends an absence: whether the sink returns, since when in ms, the position.
func appendAbsence(dst []byte, a *Absence) []byte {
	returning := byte(0)
	if a.Returning {
		returning = 1
	}
	return appendPosition(binary.AppendVarint(append(dst, returning), a.Since.UnixMilli()), a.From)
}

// parseAbsence is the inverse of appendAbsence.
func parseAbsence(value []byte) (Absence, error) {
	if len(value) == 0 || value[0] > 1 {
		return Absence{}, errValue
	}
	ms, width := binary.Varint(value[1:])
	if width <= 0 {
		return Absence{}, errValue
	}
	from, err := parsePosition(bytes.Clone(value[1+width:]))
	return Absence{From: from, Since: time.UnixMilli(ms), Returning: value[0] == 1}, err
}
