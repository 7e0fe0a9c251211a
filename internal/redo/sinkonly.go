package redo

import (
	"maps"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

// sinkOnly is what becomes of the objects that a tail leaves in existence. A reconcile asks for them and tells which
// are gone. One that ran before the sink was open did not know them: the listener itself tells then, where the records
// prove it, as the reconcile would have done (I4). A record of another object under the key of a sink-only object
// proves it, and so does the end of a reconcile that neither told of the sink-only object nor left it in the state.
// Both may happen for the same sink-only object, and the sink is told once (I3): so a tail is not forgotten while the
// delete of a sink-only object that the sink was told of may still come.
type sinkOnly struct {
	asked map[string]struct{} // uids that a reconcile under way was given
	// uids under whose keys something is in line, so that no reconcile needs to be given them
	known  map[string]struct{}
	inLine map[string]struct{} // uids whose deletes are in line
	ended  map[string]struct{} // uids of which the sink was told
	frame  *change.Snapshot    // of the reconcile whose records the sink takes
	over   bool                // the tail is of use for what ended only
}

func newSinkOnly() sinkOnly {
	return sinkOnly{asked: map[string]struct{}{}, known: map[string]struct{}{}, inLine: map[string]struct{}{}, ended: map[string]struct{}{}}
}

// told notes that the sink takes a delete, whether it is of a sink-only object.
func (g *sinkOnly) told(id *change.ID, sinkOnly bool) {
	delete(g.inLine, id.UID)
	if delete(g.ended, id.UID); sinkOnly {
		g.ended[id.UID] = struct{}{}
	}
}

// expects says whether the delete of a sink-only object that the sink was told of may come again: behind is that
// records are on disk.
func (g *sinkOnly) expects(behind bool) bool {
	maps.DeleteFunc(g.ended, func(uid string, _ struct{}) bool {
		_, asked := g.asked[uid]
		_, inLine := g.inLine[uid]
		return !asked && !inLine && !behind
	})
	return len(g.ended) > 0
}

// Ask returns the sink-only objects of the stream, for a reconcile that is to tell which are gone. Those of which
// something is in line are told by that.
func (l *Log) Ask(stream string) []change.Entry {
	t := l.tails[stream]
	if t == nil {
		return nil
	}
	var entries []change.Entry
	clear(t.sinkOnly.asked)
	for _, entry := range t.objects {
		if !t.sinkOnly.isInLine(entry.UID) {
			t.sinkOnly.asked[entry.UID] = struct{}{}
			entries = append(entries, entry)
		}
	}
	return entries
}

// Enters notes what the record, which goes in line, tells of sink-only objects. The sink may take a delete much later,
// or from disk, and another reconcile must not tell it once more, perhaps behind the object that came next (I3).
func (l *Log) Enters(rec *change.Record, clusterUID string) {
	if len(l.tails) == 0 {
		return // nearly always, and a stream's name would be made for each record
	}
	t := l.tails[rec.Stream.String()]
	if t == nil {
		return
	}
	object, found := t.objects[rec.Key]
	switch _, ended := t.sinkOnly.ended[rec.UID]; {
	case rec.Op == change.SnapshotEnd:
		clear(t.sinkOnly.asked)
	case rec.Op == change.Deleted && (ended || object.UID == rec.UID):
		t.sinkOnly.inLine[rec.UID] = struct{}{}
	case found && rec.Op.OfObject() && t.isKnownBy(rec, &object, clusterUID):
		t.sinkOnly.known[object.UID] = struct{}{}
	}
}

// isInLine says whether something is in line of the sink-only object, or of what has taken its place.
func (g *sinkOnly) isInLine(uid string) bool {
	_, inLine := g.inLine[uid]
	_, known := g.known[uid]
	return inLine || known
}

// isKnownBy says whether the state will know what became of the sink-only object: the record tells of it, or of what
// took its place later.
func (t *tail) isKnownBy(rec *change.Record, object *change.Entry, clusterUID string) bool {
	return rec.Op != change.Deleted && rec.Sink == "" && t.latest[rec.Key].cluster == rec.ID(clusterUID).Cluster &&
		change.CompareVersions(rec.ResourceVersion, object.ResourceVersion) >= 0
}

// Leaves notes that the delete will not come: the queue has left it out.
func (l *Log) Leaves(rec *change.Record) {
	if t := l.tails[rec.Stream.String()]; t != nil && rec.Op == change.Deleted {
		delete(t.sinkOnly.inLine, rec.UID)
	}
}

// drop forgets the tail, less what may still come a second time.
func (l *Log) drop(stream string, behind bool) {
	t := l.tails[stream]
	if !t.sinkOnly.expects(behind) {
		delete(l.tails, stream)
		return
	}
	maps.DeleteFunc(t.deletes, func(uid, _ string) bool {
		_, ended := t.sinkOnly.ended[uid]
		return !ended
	})
	t.sinkOnly.over = true
	clear(t.ids)
	clear(t.objects)
	clear(t.latest)
	clear(t.corrections)
}

// DropOver forgets what may not come a second time any more: nothing is on disk.
func (l *Log) DropOver() {
	for stream, t := range l.tails {
		if t.sinkOnly.over {
			l.drop(stream, false)
		}
	}
}

// Left are the sink-only objects that the record, if it is the end of a reconcile, leaves without a word, although its
// list is newer.
func (l *Log) Left(rec *change.Record, clusterUID string) []change.Entry {
	t := l.tails[rec.Stream.String()]
	if t == nil || !endsReconcile(rec) {
		return nil
	}
	cluster := rec.ID(clusterUID).Cluster
	var entries []change.Entry
	for _, entry := range t.objects {
		if t.isBefore(&entry, cluster, rec.Snapshot.ResourceVersion) {
			entries = append(entries, entry)
		}
	}
	slices.SortFunc(entries, func(a, b change.Entry) int { return change.CompareVersions(a.ResourceVersion, b.ResourceVersion) })
	return entries
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
		id := change.ID{Key: entry.Key, UID: entry.UID, ResourceVersion: entry.ResourceVersion}
		t.sinkOnly.ended[entry.UID] = struct{}{}
		t.gone(id)
	}
	return gone
}

// taking is how the listener stands when it takes a record.
type taking struct {
	clusterUID string
	old        bool           // the record was saved by an earlier process: what it ends was over before the tail began
	behind     bool           // records are on disk
	gone       []change.Entry // sink-only objects that the record proves to be gone

	frame *change.Snapshot // of the reconcile that the record may belong to, nil where there is none
}
