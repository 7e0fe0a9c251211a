package checkpoint

import (
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

// absenceBook is the absences as a batch changes them, and what it makes absent sinks miss.
type absenceBook struct {
	saved            *absences
	to               *rows
	pendingSnapshots *pendingBook
	streams          map[string]*streamAbsences // by stream; only those of which somebody is absent
}

// streamAbsences is what a batch knows of the absences of one stream.
type streamAbsences struct {
	name  string
	all   []*Absence                  // by place in the saved ones; nil is one that has ended
	fresh map[string]bool             // joined keys, after the sink and a terminator: whether the sink never had the object
	now   map[change.Key]change.Entry // the objects that the batch has changed, without a uid where they are gone
}

// of are the absences of the stream as the batch has changed them so far; nil where nobody is absent.
func (b *absenceBook) of(stream string) *streamAbsences {
	if known := b.streams[stream]; known != nil || len(b.saved.byStream[stream]) == 0 {
		return known
	}
	m := &streamAbsences{name: stream, fresh: map[string]bool{}, now: map[change.Key]change.Entry{}}
	for _, a := range b.saved.byStream[stream] {
		m.all = append(m.all, &a)
	}
	b.streams[stream] = m
	return m
}

// begin notes who is absent from now on. Who was so before stays so from then, and who was returning has to do so
// again.
func (b *absenceBook) begin(a Absence) error {
	lacks := a.From
	before := b.saved.byStream[a.Stream]
	if i := slices.IndexFunc(before, func(o Absence) bool { return o.Sink == a.Sink }); i >= 0 {
		if a.From = before[i].From; !before[i].InPart() {
			a.Since = before[i].Since
		}
	} else {
		position, _, err := streams{b.saved.database}.Position(a.Stream)
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
	b.set(&a)
	return nil
}

func (b *absenceBook) set(a *Absence) {
	b.to.saved = b.saved.load
	b.to.set(absentKey(a.Subscription), appendAbsence(nil, a))
}

// end forgets the absence and all that the sink has missed.
func (b *absenceBook) end(subscription Subscription) {
	b.to.saved = b.saved.load
	b.to.remove(absentKey(subscription))
	for _, table := range lackTables() {
		b.to.removeAll(objectPrefix(table, subscription))
	}
}

// hold notes what the log of a sink holds that comes back, and that misses the stream.
func (b *absenceBook) hold(h Held) error {
	key, ahead := missedKey(h.Subscription, h.Entry.Key, h.Entry.UID), h.Ahead
	version, before, err := b.saved.held(key)
	isMissed := version != "" && before == ""
	switch {
	case err != nil:
		return err
	case h.OnDisk && before != told:
		ahead, h.Entry.ResourceVersion = told, "" // which an older exporter takes for told
	case !h.Exists:
		ahead = told
	case ahead == "" && before != onDisk: // else it is left out
		return b.missDelete(h.Subscription, h.Entry, "")
	case isMissed:
		if isOurs, err := b.saved.isPresent(ahead, h.Stream); err != nil || !isOurs {
			return err // the version in the log is of another history: that of the end, which is known, says more
		}
	}
	b.to.set(key, appendEntry(appendText(nil, ahead), h.Entry.UID, h.Entry.ResourceVersion))
	return nil
}

// miss notes what absent sinks miss with the record.
func (b *absenceBook) miss(rec *change.Record, stream string) error {
	in := b.of(stream)
	if in == nil {
		return nil
	}
	for i, a := range in.all {
		if a == nil || rec.Sink != "" && rec.Sink != a.Sink {
			continue
		}
		var err error
		switch {
		case a.Returning:
			b.returned(rec, in, i)
		case isReturn(rec):
			err = b.returns(rec, a)
		default:
			err = b.missed(rec, in, a)
		}
		if err != nil {
			return err
		}
	}
	in.note(rec)
	return nil
}

// misses says whether the sink is not given the stream.
func (b *absenceBook) misses(subscription Subscription) bool {
	in := b.of(subscription.Stream)
	return in != nil && slices.ContainsFunc(in.all, func(a *Absence) bool {
		return a != nil && a.Sink == subscription.Sink && !a.Returning
	})
}

// isReturn says whether the record is the first that a sink is given of the stream when it comes back.
func isReturn(rec *change.Record) bool {
	return rec.Op == change.Gap && rec.Sink != "" && rec.Snapshot != nil && rec.Snapshot.Reason == change.Absent
}

// returns ends the missing, unless the snapshot is of a time before the sink left again.
func (b *absenceBook) returns(rec *change.Record, a *Absence) error {
	pendingSnapshot, err := b.pendingSnapshots.find(a.Subscription, change.Owed{Reason: change.Absent})
	if err != nil || !pendingSnapshot.exists() || pendingSnapshot.owed.Generation != rec.Snapshot.Generation {
		return err
	}
	a.Returning = true
	b.set(a)
	b.to.removeAll(objectPrefix(tableFresh, a.Subscription))
	return nil
}

// returned notes what a sink was told that comes back.
func (b *absenceBook) returned(rec *change.Record, in *streamAbsences, at int) {
	subscription := in.all[at].Subscription
	switch {
	case rec.Op == change.Deleted, rec.Sink == "" && rec.Op.OfObject(): // what was noted of the object is over
		b.to.remove(missedKey(subscription, rec.Key, rec.UID))
	case rec.Sink == "" || rec.Snapshot == nil || rec.Snapshot.Reason != change.Absent:
	case rec.Op == change.Sync || rec.Op == change.SnapshotEnd:
		in.all[at] = nil
		b.end(subscription)
	}
}

// missed notes what the record says of the objects that the sink has. One that it never had needs no delete.
func (b *absenceBook) missed(rec *change.Record, in *streamAbsences, a *Absence) error {
	switch {
	case !rec.Op.OfObject():
		return nil
	case rec.Op == change.Deleted && rec.Sink != "": // of what only the sink had
		return b.missDelete(a.Subscription, change.Entry{Key: rec.Key, UID: rec.UID, ResourceVersion: rec.ResourceVersion}, "")
	case rec.Sink != "":
		return nil
	}
	known, had, err := b.before(rec.Key, in)
	if err != nil || had && known.UID == rec.UID && rec.Op != change.Deleted {
		return err
	}
	fresh := appendKey(objectPrefix(tableFresh, a.Subscription), rec.Key)
	never, err := b.isFresh(fresh, in)
	if err != nil {
		return err
	}
	if had && !never && (known.UID == rec.UID || rec.Op != change.Deleted) { // nobody may have seen the end of the one before
		if err := b.missDelete(a.Subscription, known, endOf(rec)); err != nil {
			return err
		}
	}
	if in.fresh[string(fresh)] = rec.Op != change.Deleted; rec.Op == change.Deleted {
		b.to.remove(fresh)
	} else {
		b.to.set(fresh, nil)
	}
	return nil
}

// missDelete notes that the sink is to be told that the object is gone, unless its log has that, or its disk. The
// version is one before the object's end: what the sink is told later must not have the id of the delete, which has the
// object with it (I8). It is not one before what the sink's log has (I3). What that has from the end on, "" where
// nobody has seen it, is of another history, whose versions say nothing here.
func (b *absenceBook) missDelete(subscription Subscription, gone change.Entry, end string) error {
	key := missedKey(subscription, gone.Key, gone.UID)
	version, ahead, err := b.saved.held(key)
	if err != nil || ahead == told || ahead == onDisk {
		return err
	}
	isOurs := end == "" || change.CompareVersions(version, end) < 0
	if isOurs && change.CompareVersions(version, gone.ResourceVersion) > 0 {
		gone.ResourceVersion = version
	}
	b.to.set(key, appendEntry(appendText(nil, ""), gone.UID, gone.ResourceVersion))
	return nil
}

// endOf is the version of the end that the record tells of, "" where a watch did not see it.
func endOf(rec *change.Record) string {
	if rec.Op != change.Deleted || rec.FinalStateUnknown {
		return ""
	}
	return rec.ResourceVersion
}

// before is the object that the stream has under the key, as the batch has changed it so far, false where there is
// none.
func (b *absenceBook) before(key change.Key, in *streamAbsences) (change.Entry, bool, error) {
	if entry, changed := in.now[key]; changed {
		return entry, entry.UID != "", nil
	}
	return inventory{b.saved.database}.Lookup(in.name, key)
}

// isFresh says whether the object was made while the sink was absent.
func (b *absenceBook) isFresh(key []byte, in *streamAbsences) (bool, error) {
	if fresh, known := in.fresh[string(key)]; known {
		return fresh, nil
	}
	_, found, err := b.saved.get(key)
	return found, err
}

// note remembers what the record, which all sinks are given, makes of the object.
func (m *streamAbsences) note(rec *change.Record) {
	switch {
	case rec.Sink != "" || !rec.Op.OfObject():
	case rec.Op == change.Deleted:
		m.now[rec.Key] = change.Entry{}
	default:
		m.now[rec.Key] = change.Entry{Key: rec.Key, UID: rec.UID, ResourceVersion: rec.ResourceVersion}
	}
}
