package pipeline

import (
	"maps"
	"slices"
	"sync"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// deliveredSet is what a sink's log held after its mark when the sink was opened: records that a crash kept from being
// saved. The same records come again from the watch, or in another shape from a reconcile, and are not written twice.
//
// While the set is not empty the sink's mark must stay where it is: a record that is still to come again lies before
// any newer mark.
//
// A log may be compacted, so that of an object only the newest record is left, and an older one may come again.
// Whatever is older than what the log holds of the same object is never written behind it (I3).
type deliveredSet struct {
	ledger  ledger
	foreign func(change.ID) (bool, error) // ids of other clusters
	// shuffled says that a queue which coalesces moves newer records before older ones of other objects: then only
	// what is delivered with all before it passes a tail.
	shuffled bool

	mu      sync.Mutex             // guards the following: the listener takes, sources ask for ghosts, the committer passes
	streams []*change.Stream       // those that there are now
	tails   tails                  // by stream, none that is empty
	again   map[change.ID]struct{} // of records on disk that the log holds
	found   foundIDs               // kept as long as any of it may come again
}

// know makes what was read of the log what the set knows.
func (d *deliveredSet) know(r *logReading) {
	again := r.spooled.again()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tails, d.again, d.found = r.tails, again, r.found
}

// corrected says whether the log holds a correction of the stream that the saved state does not know.
func (d *deliveredSet) corrected(stream *change.Stream) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tails[stream.String()]
	return t != nil && len(t.corrections) > 0
}

// clear forgets everything.
func (d *deliveredSet) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tails, d.again, d.found = nil, nil, foundIDs{}
}

// foreign tells the ids of other clusters. One that was behind the name before, as the state knows, is an earlier
// epoch of ours.
func foreign(store *checkpoint.Store, clusterUID string) func(change.ID) (bool, error) {
	return func(id change.ID) (bool, error) {
		if change.SameCluster(id.Cluster, clusterUID) {
			return false, nil
		}
		ours, err := store.Clusters()
		return !slices.ContainsFunc(ours, func(uid string) bool { return change.SameCluster(id.Cluster, uid) }), err
	}
}

// references are to copies of the streams, which the set owns.
func references(streams []change.Stream) []*change.Stream {
	all := make([]*change.Stream, len(streams))
	for i := range streams {
		all[i] = &streams[i]
	}
	return all
}

// present are the streams that there are now.
func (d *deliveredSet) present() []*change.Stream {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.streams)
}

// streamNamed is the configured stream of the name, nil where there is none.
func (d *deliveredSet) streamNamed(name string) *change.Stream {
	for _, s := range d.present() {
		if s.String() == name {
			return s
		}
	}
	return nil
}

// streamOf is the one of the streams that the id's record came from, nil where there is none.
func streamOf(streams []*change.Stream, id change.ID) *change.Stream {
	for _, s := range streams {
		if isOf(id, s) {
			return s
		}
	}
	return nil
}

// isOf says whether the id's record came from the stream.
func isOf(id change.ID, stream *change.Stream) bool {
	return id.Resource == stream.Resource.String() &&
		(stream.Namespace == "" || stream.Namespace == id.Key.Namespace)
}

func (d *deliveredSet) empty() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.tails) == 0 && len(d.again) == 0
}

// remaining are the ids of what was found, and may come again. It is false while records on disk are still to be
// compared.
func (d *deliveredSet) remaining() (ids []string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.found.all(), len(d.again) == 0
}

// compared notes that what was compared with the log is saved. Where nothing is left to come, what was found is of no
// use any more.
func (d *deliveredSet) compared() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.tails) == 0 && len(d.again) == 0 {
		d.found = foundIDs{}
	}
}

// wrote notes what is in the log now. The delete of a ghost, which the listener makes, is in no tracker.
func (d *deliveredSet) wrote(batch []*change.Record, clusterUID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.found.isEmpty() { // nearly always
		return
	}
	for _, rec := range batch {
		id := rec.ID(clusterUID)
		d.found.wrote(&id)
	}
}

// expects says whether records of the stream are to come again.
func (d *deliveredSet) expects(stream string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tails[stream] != nil
}

// objects are those that the log's records of the stream leave in existence.
func (d *deliveredSet) objects(stream string) []change.Entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tails[stream] == nil {
		return nil
	}
	return slices.Collect(maps.Values(d.tails[stream].objects))
}

// take says whether the sink has the record, and forgets it then; gone are the ghosts that are to be told of before
// it. What a stream has left is forgotten when its position has passed it.
func (d *deliveredSet) take(rec *change.Record, now *taking) (found bool, gone []change.Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	stream := rec.Stream.String()
	if len(d.again) > 0 {
		id := rec.ID(now.clusterUID)
		if _, found := d.again[id]; found {
			delete(d.again, id)
			return true, nil
		}
	}
	t := d.tails[stream]
	if t == nil {
		return false, nil
	}
	id := rec.ID(now.clusterUID)
	found = t.take(rec, id) || t.takeNote(rec, id) || t.isOlder(rec, id)
	if !found {
		gone, now.frame = t.endGhosts(rec, id, now.gone), t.ghosts.frame
	}
	switch {
	case rec.Op == change.SnapshotBegin && rec.Sink == "":
		t.ghosts.frame = rec.Snapshot
	case rec.Op == change.Deleted:
		t.ghosts.told(&id, t.objects[id.Key].UID == id.UID)
		t.gone(id) // also if the attempt that tells it is repeated
	case rec.Op.OfObject() && !found:
		delete(t.deletes, id.UID) // it is written now, and may be deleted once more
	}
	if len(t.ids) == 0 || !d.shuffled && t.isPassed(rec) || !now.old && t.isCompared(rec) {
		d.drop(stream, now.behind)
	}
	return found, gone
}

// pass forgets what records that are delivered, with all before them, have left behind. Bookmarks are nobody's to
// take, but a quiet stream has nothing else.
func (d *deliveredSet) pass(records []*change.Record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.tails) == 0 {
		return
	}
	for _, rec := range records {
		if stream := rec.Stream.String(); d.tails[stream] != nil && d.tails[stream].isPassed(rec) {
			d.drop(stream, false)
		}
	}
}

// endsReconcile says whether everything that a log's tail could tell of the stream was compared with the server.
func endsReconcile(rec *change.Record) bool { return rec.Op == change.SnapshotEnd && rec.Sink == "" }
