package redo

import (
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

// tail is one stream's part.
type tail struct {
	ids     map[change.ID]struct{}
	deletes map[string]dated            // by uid
	unseen  map[string]struct{}         // of these, the uids of those that no watch saw
	objects map[change.Key]change.Entry // what the records leave in existence
	latest  map[change.Key]latest       // what is known of the order of an object's records
	closed  map[change.Key]dated        // the key's newest delete, of those that are in that order, too
	newest  string                      // the highest resourceVersion of the ids
	gap     string                      // the version of the newest, where there are deletes
	over    bool                        // the tail has the end of what compared everything after that

	corrections map[change.Key]struct{} // what a full snapshot found, and comes again by nothing else
	sinkOnly    sinkOnly                // what becomes of the objects
}

// dated is a resourceVersion of one history of a cluster, whose name is that in ids. It says nothing of another one: an
// etcd that was restored has objects again whose deletes the sink was told.
type dated struct{ cluster, version string }

// in is the version, "" where it is one of another history.
func (d dated) in(cluster string) string {
	if d.cluster != cluster {
		return ""
	}
	return d.version
}

// latest is the highest resourceVersion that the tail holds of one key, less those of deletes: a delete that a
// reconcile told of may carry a version of another cluster.
type latest struct {
	cluster string // the one that the version is of
	version string
	uid     string
}

// tails are those of a log, by stream.
type tails map[string]*tail

// of is the stream's.
func (all tails) of(stream string) *tail {
	if all[stream] == nil {
		all[stream] = &tail{
			ids: map[change.ID]struct{}{}, deletes: map[string]dated{}, unseen: map[string]struct{}{},
			objects: map[change.Key]change.Entry{}, latest: map[change.Key]latest{}, closed: map[change.Key]dated{}, corrections: map[change.Key]struct{}{},
			sinkOnly: newSinkOnly(),
		}
	}
	return all[stream]
}

// settle notes that the inventory knows how the object is after the record: what an earlier one left in existence is
// no sink-only object, nor is what the record took the place of, though a watch never told of its end; and what an
// earlier one deleted came back, as in an etcd that was restored. A dead letter that was sent again as history tells
// nothing of what is newer. It says whether that may have changed anything.
func (all tails) settle(id change.ID, stream *change.Stream) bool {
	t := all[stream.String()]
	if t == nil {
		return false
	}
	_, corrected := t.corrections[id.Key]
	delete(t.corrections, id.Key)
	known, found := t.objects[id.Key]
	_, deleted := t.deletes[id.UID]
	history := id.Op != change.Deleted && change.CompareVersions(known.ResourceVersion, id.ResourceVersion) > 0
	exists := id.Op.OfObject() && id.Op != change.Deleted
	if (known.UID == id.UID || exists) && !history {
		delete(t.objects, id.Key)
	}
	if exists {
		delete(t.deletes, id.UID)
	}
	return corrected || found || deleted
}

// await makes tails that have told of deletes wait for the versions of the snapshots. One that no watch saw has the
// version of the state before it: the watch may bring it, up to the snapshot's version, where the state is older (I11).
// After a gap it may bring more states of the object before that, which the sink was not told. It returns the ids of
// the frames that say so: they are not saved either.
func (all tails) await(frames frames) (ids []string) {
	for stream, t := range all {
		if len(t.deletes) > 0 {
			ids = append(ids, t.await(frames[stream])...)
		}
	}
	return ids
}

func (t *tail) await(frames framed) (ids []string) {
	t.gap, t.over = frames.gap.version, frames.end.text != ""
	t.newest = newer(t.newest, newer(frames.begin.version, t.gap))
	for uid := range t.unseen {
		deleted := t.deletes[uid]
		t.deletes[uid] = dated{deleted.cluster, newer(deleted.version, t.gap)}
	}
	all := []string{frames.begin.text, frames.gap.text, frames.end.text}
	return slices.DeleteFunc(all, func(id string) bool { return id == "" })
}

// endsHere says whether the delete is of an object of which the tail has told, if only by the note of its last state,
// and the inventory does not know. That it is not there proves nothing of the delete then: a watch may bring it.
func (all tails) endsHere(id change.ID, stream *change.Stream) bool {
	t := all[stream.String()]
	return t != nil && id.Op == change.Deleted && (t.objects[id.Key].UID == id.UID || t.isNoted(id))
}

// isNoted says whether the tail has the note of the object's state with the id's version.
func (t *tail) isNoted(id change.ID) bool {
	for _, note := range change.NotesOf(id) {
		if _, noted := t.ids[note]; noted {
			return true
		}
	}
	return false
}

// isPassed says whether nothing of the tail comes again after the record. A position that is complete at the tail's
// newest version is after it, too. Corrections come again from a full snapshot alone, beside the watch.
func (t *tail) isPassed(rec *change.Record) bool {
	if len(t.corrections) > 0 || rec.Position.UnderWay() || rec.Snapshot != nil && rec.Snapshot.Reason.Full() {
		return false // what the position says is still to come, or it is that from before
	}
	return t.isBelow(rec.Position)
}

// isBelow says whether the position is after all that the tail tells.
func (t *tail) isBelow(position change.Position) bool {
	order := change.CompareVersions(position.ResourceVersion, t.newest)
	return order > 0 || order == 0 && position.Complete
}

// isCompared says whether the record is the end of a reconcile that has compared everything that the tail tells. Where
// the watch goes on beside it, the log may be ahead of that: the watch brings it again.
func (t *tail) isCompared(rec *change.Record) bool {
	return endsReconcile(rec) && (!rec.Snapshot.Reason.Beside() || t.isBelow(rec.Position))
}

// isOlder says whether the log holds something newer of the record's object than the record. What a watch sends is
// delivered then, or lies in the gap that a reconcile has announced there. What a list at an exact version found would
// be false after a later record, and so would the delete of an object after the one that took its place: the log was
// compacted since, or no watch told of that delete.
func (t *tail) isOlder(rec *change.Record, id change.ID) bool {
	known := t.latest[rec.Key]
	if known.cluster != id.Cluster {
		known = latest{}
	}
	deleted := t.deletes[id.UID].in(id.Cluster)
	gone := deleted != ""
	told := newer(newer(known.version, deleted), t.closed[rec.Key].in(id.Cluster))
	switch {
	case !rec.Op.OfObject():
		return false
	case rec.Snapshot == nil && gone && change.CompareVersions(deleted, rec.ResourceVersion) >= 0:
		return true // the delete has the version of the state before it, where no watch told of it
	case rec.Snapshot == nil:
		return change.CompareVersions(told, rec.ResourceVersion) > 0
	case rec.Op == change.Deleted && known.uid != id.UID && change.CompareVersions(known.version, rec.ResourceVersion) > 0:
		return true
	case rec.Snapshot.Reason.Full() && gone:
		return true
	}
	// the watch brings what is newer, and a page may have been listed later than the first
	return rec.Snapshot.Reason.Beside() && change.CompareVersions(told, newer(rec.Snapshot.ResourceVersion, rec.ResourceVersion)) > 0
}

// isPassedOver says whether the record lies in the gap after which the sink was told that its object is gone: else the
// watch would tell that the object is there again before it tells of a change. The delete may be one that no watch saw,
// with a version that the sink was never told. In a shuffled queue the change may be all that is left of both. Then
// the end of the comparison proves it: what was there would have been told.
func (t *tail) isPassedOver(rec *change.Record, id change.ID, shuffled bool) bool {
	return t.deletes[rec.UID].in(id.Cluster) != "" && rec.Op == change.Updated && rec.Snapshot == nil && (t.over || !shuffled) &&
		change.CompareVersions(rec.ResourceVersion, t.gap) <= 0
}

// gone notes that the sink was told of the delete.
func (t *tail) gone(id change.ID) {
	t.deletes[id.UID] = dated{id.Cluster, newer(t.deletes[id.UID].in(id.Cluster), id.ResourceVersion)}
	if t.objects[id.Key].UID == id.UID {
		delete(t.objects, id.Key)
	}
}

func (t *tail) add(id change.ID) {
	if id.Op == change.Sync {
		if t.has(id) {
			return
		}
		id.Op, id.Snapshot = change.Replaced, "" // as such it comes again, if the watch does not tell it
	}
	t.ids[id] = struct{}{}
	if id.Key.Name != "" && id.Op != change.Deleted {
		t.order(id)
	}
	switch {
	case id.Op == change.Deleted:
		t.gone(id)
	case id.Op.OfObject():
		delete(t.deletes, id.UID) // it came back: an object can leave a selection and enter it again
		delete(t.unseen, id.UID)
		t.objects[id.Key] = change.Entry{Key: id.Key, UID: id.UID, ResourceVersion: id.ResourceVersion}
	}
	t.newest = newer(t.newest, id.ResourceVersion)
}

// close notes the version of a delete among those of its key. Where a queue coalesces, or a log is compacted, the
// delete may be all that is left of its object, and of others that had the name before.
func (t *tail) close(id change.ID) {
	t.closed[id.Key] = dated{id.Cluster, newer(t.closed[id.Key].in(id.Cluster), id.ResourceVersion)}
}

// order notes the record's version among those of its key.
func (t *tail) order(id change.ID) {
	known := t.latest[id.Key]
	if known.cluster != id.Cluster {
		known = latest{cluster: id.Cluster}
	}
	if change.CompareVersions(id.ResourceVersion, known.version) >= 0 {
		known.version, known.uid = id.ResourceVersion, id.UID
	}
	t.latest[id.Key] = known
}

// has says whether the tail has told of the version of the object.
func (t *tail) has(id change.ID) bool {
	known := t.objects[id.Key]
	return known.UID == id.UID && change.CompareVersions(known.ResourceVersion, id.ResourceVersion) >= 0
}

func newer(a, b string) string {
	if change.CompareVersions(a, b) > 0 {
		return a
	}
	return b
}

// take finds the record in whatever shape it was delivered. An object that a reconcile finds is there when any record
// of the same version is, one that a watch tells of when a reconcile found it, and a delete when any delete of the
// same uid is: a reconcile may have told of it before the watch.
func (t *tail) take(rec *change.Record, id change.ID) bool {
	switch {
	case id.Op == change.Replaced:
		return t.takeOp(id, change.Added) || t.takeOp(id, change.Updated) || t.takeOp(id, change.Replaced)
	case id.Op == change.Deleted:
		_, found := t.deletes[id.UID]
		return t.takeOp(id, change.Deleted) || found
	}
	return t.takeOp(id, id.Op) || id.Op.OfObject() && id.Op != change.Sync && t.takeOp(id, change.Replaced)
}

// takeNote finds the gap that was written in the place of the record, which the sink had rejected. A delete that no
// watch saw carries the version of the record before it, and so of that one's note.
func (t *tail) takeNote(rec *change.Record, id change.ID) bool {
	if id.Key.Name == "" || rec.FinalStateUnknown {
		return false
	}
	notes := change.NotesOf(id)
	return t.takeOp(notes[0], change.Gap) || t.takeOp(notes[1], change.Gap)
}

func (t *tail) takeOp(id change.ID, op change.Op) bool {
	id.Op = op
	_, found := t.ids[id]
	delete(t.ids, id)
	return found
}

// isKnownBy says whether the state will know what became of the sink-only object: the record tells of it, or of what
// took its place later.
func (t *tail) isKnownBy(rec *change.Record, object *change.Entry, clusterUID string) bool {
	return rec.Op != change.Deleted && rec.Sink == "" && t.latest[rec.Key].cluster == rec.ID(clusterUID).Cluster &&
		change.CompareVersions(rec.ResourceVersion, object.ResourceVersion) >= 0
}

// isBefore says whether the sink-only object is of the time before the version in the cluster's history.
func (t *tail) isBefore(object *change.Entry, cluster, version string) bool {
	return t.latest[object.Key].cluster != cluster || change.CompareVersions(object.ResourceVersion, version) <= 0
}

// isReplaced says whether the record proves that another object has taken the place of the sink-only object. A delete
// does so, too: where a queue coalesces, it is all that is left of that object. But in another history it may be of an
// object that was there before.
func (t *tail) isReplaced(object *change.Entry, id *change.ID) bool {
	if !id.Op.OfObject() || object.UID == id.UID || !t.isBefore(object, id.Cluster, id.ResourceVersion) {
		return false
	}
	return id.Op != change.Deleted || t.latest[object.Key].cluster == id.Cluster
}

// endSinkOnly returns the sink-only objects that are gone before the record, and notes that the sink is told: those
// left at the end of a reconcile, or the one whose key the record's object has.
func (t *tail) endSinkOnly(rec *change.Record, id change.ID, left []change.Entry) []change.Entry {
	gone := left
	if object, found := t.objects[id.Key]; found && t.isReplaced(&object, &id) {
		gone = append(gone, object)
	}
	for _, entry := range gone {
		id := change.ID{Cluster: id.Cluster, Key: entry.Key, UID: entry.UID, ResourceVersion: entry.ResourceVersion}
		t.sinkOnly.ended[entry.UID] = struct{}{}
		t.gone(id)
	}
	return gone
}
