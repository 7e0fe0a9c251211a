package redo

import (
	"maps"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Undeleted are the objects that a sink has though they are gone: its log has lost its end, and their deletes with it,
// or the sink was absent. Neither the inventory knows them, nor will the watch tell of them again. The next full
// snapshot does. The zero value is none.
type Undeleted struct {
	objects map[string]map[change.Key][]change.Entry // by stream, none that is empty; several of one key may be missed
	ended   map[string]ending                        // by uid: of which the listener itself tells
	inLine  map[string]int                           // by uid: deletes in line for the sink, which the state does not know
	awaits  map[string]awaited                       // by stream, of a sink that returns while records are on disk for it
}

// awaited is the return of a sink that is not given its gap yet. What the sink takes until then is from before it
// missed the stream. It takes the place of none of the objects: those were there later.
type awaited struct {
	generation uint64 // of the return
	uids       map[string]struct{}
}

// ending is the delete of an object that the listener itself tells. It is remembered while somebody may tell it once
// more: whoever reads the state, which does not know of it yet, and a source that has read of it before.
type ending struct {
	stream string // whose source may hold the delete until the sink has the end of its return, "" where none does
	saved  bool   // the state knows
}

// Forget forgets the objects.
func (u *Undeleted) Forget() { u.objects = nil }

// None says whether there are none.
func (u *Undeleted) None() bool { return len(u.objects) == 0 }

// Settled says whether no record needs a look: there are none, and the listener itself tells of none.
func (u *Undeleted) Settled() bool { return u.None() && len(u.ended) == 0 }

// Note takes what a log says of an object, oldest first; gone is that the state knows better.
func (u *Undeleted) Note(id change.ID, stream string, gone bool) {
	switch {
	case id.Op == change.Deleted:
		u.drop(stream, id.Key, id.UID)
	case gone:
		delete(u.objects[stream], id.Key) // in the log, it has taken the place of another
		u.add(stream, change.Entry{Key: id.Key, UID: id.UID, ResourceVersion: id.ResourceVersion})
	}
}

// Replace makes the entries those of the stream.
func (u *Undeleted) Replace(stream string, entries []change.Entry) {
	delete(u.objects, stream)
	for _, entry := range entries {
		u.Recall(stream, entry)
	}
}

// Await is Replace for a return that is behind records on disk. What was recalled before is known to be older than they
// are.
func (u *Undeleted) Await(stream string, entries []change.Entry, generation uint64) {
	before, now := u.awaits[stream].uids, awaited{generation, map[string]struct{}{}}
	known := map[string]struct{}{}
	for _, entry := range u.Of(stream) {
		known[entry.UID] = struct{}{}
	}
	for _, entry := range entries {
		_, isKnown := known[entry.UID]
		if _, waits := before[entry.UID]; waits || !isKnown {
			now.uids[entry.UID] = struct{}{}
		}
	}
	if u.awaits == nil {
		u.awaits = map[string]awaited{}
	}
	u.awaits[stream] = now
	u.Replace(stream, entries)
}

// Takes notes that the sink takes the record, which may be the gap of a return or its end, or may say of an object that
// it is there again.
func (u *Undeleted) Takes(rec *change.Record) {
	if rec.Op.OfObject() && rec.Op != change.Deleted {
		delete(u.ended, rec.UID)
	}
	if rec.Sink == "" || rec.Snapshot == nil || rec.Snapshot.Reason != change.Absent {
		return
	}
	switch stream := rec.Stream.String(); rec.Op {
	case change.Gap:
		if at, awaits := u.awaits[stream]; awaits && at.generation <= rec.Snapshot.Generation {
			delete(u.awaits, stream)
		}
	case change.SnapshotEnd:
		for uid, e := range u.ended {
			if e.stream == stream {
				u.end(uid, ending{saved: e.saved})
			}
		}
	}
}

// Recall makes the entry one of the stream's, as the state has it, unless its end is in line, or the listener itself
// has told of it.
func (u *Undeleted) Recall(stream string, entry change.Entry) {
	if _, ended := u.ended[entry.UID]; !ended && u.inLine[entry.UID] == 0 {
		u.add(stream, entry)
	}
}

func (u *Undeleted) add(stream string, entry change.Entry) {
	if u.objects == nil {
		u.objects = map[string]map[change.Key][]change.Entry{}
	}
	if u.objects[stream] == nil {
		u.objects[stream] = map[change.Key][]change.Entry{}
	}
	u.objects[stream][entry.Key] = append(u.objects[stream][entry.Key], entry)
}

func (u *Undeleted) drop(stream string, key change.Key, uid string) {
	byKey := u.objects[stream]
	entries, found := byKey[key]
	if !found {
		return
	}
	byKey[key] = slices.DeleteFunc(entries, func(e change.Entry) bool { return e.UID == uid })
	if len(byKey[key]) == 0 {
		delete(byKey, key)
	}
	if len(byKey) == 0 {
		delete(u.objects, stream)
	}
}

// Of are those of the stream.
func (u *Undeleted) Of(stream string) []change.Entry {
	return slices.Concat(slices.Collect(maps.Values(u.objects[stream]))...)
}

// ReplacedBy are the objects of which the record's has taken the place. Of that, a queue that coalesces may have left
// nothing but its delete, which says so if it is later.
func (u *Undeleted) ReplacedBy(rec *change.Record) (gone []change.Entry) {
	if !rec.Op.OfObject() {
		return nil
	}
	stream := rec.Stream.String()
	for _, entry := range u.objects[stream][rec.Key] {
		isEarlier := rec.Op != change.Deleted || change.CompareVersions(entry.ResourceVersion, rec.ResourceVersion) < 0
		if _, awaits := u.awaits[stream].uids[entry.UID]; entry.UID != rec.UID && !awaits && isEarlier {
			gone = append(gone, entry)
		}
	}
	return gone
}

// HasTold says whether the listener itself has told of the delete that is the record.
func (u *Undeleted) HasTold(rec *change.Record) bool {
	_, told := u.ended[rec.UID]
	return told && rec.Op == change.Deleted && rec.Sink != ""
}

// Told forgets what a record in line tells the sink, however much later: another snapshot must not tell it once more
// (I3).
func (u *Undeleted) Told(rec *change.Record) {
	u.drop(rec.Stream.String(), rec.Key, rec.UID)
}

// Enters is Told for a delete that goes in line. Until it is saved, nobody recalls its object from the state.
func (u *Undeleted) Enters(rec *change.Record) {
	u.Told(rec)
	if u.inLine == nil {
		u.inLine = map[string]int{}
	}
	u.inLine[rec.UID]++
}

// Leave takes records that are saved.
func (u *Undeleted) Leave(records []*change.Record) {
	for _, rec := range records {
		if rec.Op != change.Deleted {
			continue
		}
		if n := u.inLine[rec.UID]; n > 1 {
			u.inLine[rec.UID]--
		} else {
			delete(u.inLine, rec.UID)
		}
	}
}

// Tells is told of a delete that the listener makes itself.
func (u *Undeleted) Tells(rec *change.Record) {
	stream := rec.Stream.String()
	isOfObject := func(e change.Entry) bool { return e.UID == rec.UID }
	if !slices.ContainsFunc(u.objects[stream][rec.Key], isOfObject) { // no source has read of it here
		stream = ""
	}
	u.Told(rec)
	if u.ended == nil {
		u.ended = map[string]ending{}
	}
	u.ended[rec.UID] = ending{stream: stream}
}

// Saved notes that the state knows that the sink was told of the object.
func (u *Undeleted) Saved(uid string) {
	if e, ended := u.ended[uid]; ended {
		u.end(uid, ending{e.stream, true})
	}
}

// end remembers how it stands with the delete, unless nobody tells it once more.
func (u *Undeleted) end(uid string, e ending) {
	if e == (ending{saved: true}) {
		delete(u.ended, uid)
	} else {
		u.ended[uid] = e
	}
}

// Taken forgets what is being written to the sink, which an earlier process may have left on disk. The end of the
// snapshot that was owed is the end of everything.
func (u *Undeleted) Taken(batch []*change.Record) {
	if len(u.objects) == 0 {
		return
	}
	for _, rec := range batch {
		switch stream := rec.Stream.String(); {
		case rec.Op == change.Deleted:
			u.drop(stream, rec.Key, rec.UID)
		case rec.Op == change.SnapshotEnd && rec.Sink != "" && rec.Snapshot.Reason == change.Lost:
			delete(u.objects, stream)
		}
	}
}
