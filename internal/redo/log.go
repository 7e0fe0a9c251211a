package redo

import (
	"maps"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Log is what a sink's log held after its mark when the sink was opened: records that a crash kept from being
// saved. The same records come again from the watch, or in another shape from a reconcile, and are not written twice.
//
// While the set is not empty the sink's mark must stay where it is: a record that is still to come again lies before
// any newer mark.
//
// A log may be compacted, so that of an object only the newest record is left, and an older one may come again.
// Whatever is older than what the log holds of the same object is never written after it (I3).
type Log struct {
	shuffled bool
	streams  []*change.Stream       // those that there are now
	tails    tails                  // by stream, none that is empty
	again    map[change.ID]struct{} // of records on disk that the log holds
	found    foundIDs               // kept as long as any of it may come again
}

// NewLog returns what is known of a log that was not read yet. shuffled says that the sink's queue coalesces, and moves
// newer records before older ones of other objects: then only what is delivered with all before it passes a tail.
func NewLog(streams []change.Stream, shuffled bool) Log {
	all := make([]*change.Stream, len(streams))
	for i := range streams {
		all[i] = &streams[i]
	}
	return Log{streams: all, shuffled: shuffled}
}

// Know makes what was read of the log what the set knows.
func (l *Log) Know(r *Reading) {
	again := r.spooled.again()
	for _, frame := range r.tails.await(r.frames) {
		r.found.frame(frame)
	}
	l.tails, l.again, l.found = r.tails, again, r.found
}

// Corrected says whether the log holds a correction of the stream that the saved state does not know.
func (l *Log) Corrected(stream *change.Stream) bool {
	t := l.tails[stream.String()]
	return t != nil && len(t.corrections) > 0
}

// Clear forgets everything.
func (l *Log) Clear() {
	l.tails, l.again, l.found = nil, nil, foundIDs{}
}

// Present are the streams that there are now.
func (l *Log) Present() []*change.Stream {
	return slices.Clone(l.streams)
}

// Empty says whether nothing is to come again.
func (l *Log) Empty() bool {
	return len(l.tails) == 0 && len(l.again) == 0
}

// Remaining are the ids of what was found, and may come again. It is false while records on disk are still to be
// compared.
func (l *Log) Remaining() (ids []string, ok bool) {
	return l.found.all(), len(l.again) == 0
}

// Compared notes that what was compared with the log is saved. Where nothing is left to come, what was found is of no
// use any more.
func (l *Log) Compared() {
	if len(l.tails) == 0 && len(l.again) == 0 {
		l.found = foundIDs{}
	}
}

// Wrote notes what is in the log now. The delete of a sink-only object, which the listener makes, is in no tracker.
func (l *Log) Wrote(batch []*change.Record, clusterUID string) {
	if l.found.isEmpty() { // nearly always
		return
	}
	for _, rec := range batch {
		id := rec.ID(clusterUID)
		l.found.wrote(&id)
	}
}

// Expects says whether records of the stream are to come again.
func (l *Log) Expects(stream string) bool {
	return l.tails[stream] != nil
}

// ToCome are the ids of the stream that the log holds, and that are to come again, in no order. Of an object that the
// sink was told is gone, that is the delete alone.
func (l *Log) ToCome(stream string) (ids []change.ID) {
	t := l.tails[stream]
	if t == nil {
		return nil
	}
	for id := range t.ids {
		if _, gone := t.deletes[id.UID]; !gone || id.Op == change.Deleted {
			ids = append(ids, id)
		}
	}
	return ids
}

// Take says whether the sink has the record, and forgets it then; gone are the sink-only objects that are to be told of
// before it. What a stream has left is forgotten when its position has passed it.
func (l *Log) Take(rec *change.Record, now *Taking) (found bool, gone []change.Entry) {
	stream := rec.Stream.String()
	if len(l.again) > 0 {
		id := rec.ID(now.ClusterUID)
		if _, found := l.again[id]; found {
			delete(l.again, id)
			return true, nil
		}
	}
	t := l.tails[stream]
	if t == nil {
		return false, nil
	}
	id := rec.ID(now.ClusterUID)
	found = t.take(rec, id) || t.takeNote(rec, id) || t.isOlder(rec, id) || t.isPassedOver(rec, id, l.shuffled)
	if found && rec.Snapshot != nil {
		delete(t.corrections, id.Key)
	}
	if !found {
		gone, now.Frame = t.endSinkOnly(rec, id, now.Gone), t.sinkOnly.frame
	}
	switch {
	case rec.Op == change.SnapshotBegin && rec.Sink == "":
		t.sinkOnly.frame = rec.Snapshot
	case rec.Op == change.SnapshotEnd && rec.Snapshot.Reason.Full() && rec.Snapshot.Limits == change.Limits{} && !now.Old:
		clear(t.corrections) // it has compared everything, and what is left is no difference any more
	case rec.Op == change.Deleted:
		t.sinkOnly.told(&id, rec.Seq, t.objects[id.Key].UID == id.UID)
		t.gone(id) // also if the attempt that tells it is repeated
	case rec.Op.OfObject() && !found:
		delete(t.deletes, id.UID) // it is written now, and may be deleted once more
	}
	if len(t.ids) == 0 || !l.shuffled && t.isPassed(rec) || !now.Old && t.isCompared(rec) {
		l.drop(stream, now.Behind)
	}
	return found, gone
}

// Pass forgets what records that are delivered, with all before them, have left behind. Bookmarks are nobody's to
// take, but a quiet stream has nothing else.
func (l *Log) Pass(records []*change.Record) {
	if len(l.tails) == 0 {
		return
	}
	for _, rec := range records {
		if stream := rec.Stream.String(); l.tails[stream] != nil && l.tails[stream].isPassed(rec) {
			l.drop(stream, false)
		}
	}
}

// Join makes the stream one of those whose records are looked for in the sink's log. It may be one still.
func (l *Log) Join(stream change.Stream) {
	if !slices.ContainsFunc(l.streams, isNamed(stream.String())) {
		l.streams = append(l.streams, &stream)
	}
}

// Leave forgets what the log tells of the stream: nothing of it comes again, and marks need not wait for it.
func (l *Log) Leave(name string) {
	l.streams = slices.DeleteFunc(l.streams, isNamed(name))
	delete(l.tails, name)
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
// or from disk, and another reconcile must not tell it once more, perhaps after the object that came next (I3).
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
		t.sinkOnly.answer(rec)
	case rec.Op == change.Deleted && (ended || object.UID == rec.UID):
		t.sinkOnly.inLine[rec.UID] = rec.Seq
	case found && rec.Op.OfObject() && t.isKnownBy(rec, &object, clusterUID):
		t.sinkOnly.known[object.UID] = struct{}{}
	}
}

// Leaves notes that the delete will not come: the queue has left it out.
func (l *Log) Leaves(rec *change.Record) {
	if t := l.tails[rec.Stream.String()]; t != nil && rec.Op == change.Deleted {
		t.sinkOnly.leaves(rec.UID, rec.Seq)
	}
}

// drop forgets the tail, less what may still come a second time.
func (l *Log) drop(stream string, behind bool) {
	t := l.tails[stream]
	if !t.sinkOnly.expects(behind) {
		delete(l.tails, stream)
		return
	}
	maps.DeleteFunc(t.deletes, func(uid string, _ dated) bool {
		_, ended := t.sinkOnly.ended[uid]
		return !ended
	})
	t.sinkOnly.over = true
	clear(t.ids)
	clear(t.objects)
	clear(t.latest)
	clear(t.corrections)
}

// DropOver forgets what may not come a second time any more: nothing is on disk, and all that is in line has the Seq of
// the frontier or a higher one.
func (l *Log) DropOver(frontier uint64) {
	for stream, t := range l.tails {
		if t.sinkOnly.passed(frontier); t.sinkOnly.over {
			l.drop(stream, false)
		}
	}
}

// Left are the sink-only objects that the record, if it is the end of a reconcile, leaves without a word, although its
// list is newer. A reconcile that was asked for them has left them to the watch.
func (l *Log) Left(rec *change.Record, clusterUID string) []change.Entry {
	t := l.tails[rec.Stream.String()]
	if t == nil || !endsReconcile(rec) {
		return nil
	}
	cluster := rec.ID(clusterUID).Cluster
	var entries []change.Entry
	for _, entry := range t.objects {
		if t.isBefore(&entry, cluster, rec.Snapshot.ResourceVersion) && !t.sinkOnly.isAnswered(entry.UID, rec) {
			entries = append(entries, entry)
		}
	}
	slices.SortFunc(entries, func(a, b change.Entry) int { return change.CompareVersions(a.ResourceVersion, b.ResourceVersion) })
	return entries
}
