package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/kubecdc/kubecdc/internal/change"
)

// deliveredSet is what a sink's log held after its mark when the sink was opened: records that a crash kept from being
// saved. The same records come again from the watch, or in another shape from a reconcile, and are not written twice.
//
// While the set is not empty the sink's mark must stay where it is: a record that is still to come again lies before
// any newer mark.
type deliveredSet struct {
	streams []change.Stream
	ledger  ledger

	mu    sync.Mutex       // guards the following: the listener takes, the source of a stream asks for ghosts
	tails map[string]*tail // by stream, none that is empty
}

// tail is one stream's part.
type tail struct {
	ids     map[change.ID]struct{}
	deletes map[string]struct{}         // uids
	objects map[change.Key]change.Entry // what the records leave in existence
	newest  string                      // the highest resourceVersion of the ids
}

// add takes ids as text, oldest first. Those that are no record of one of the streams, or that are saved, are left out.
func (d *deliveredSet) add(ids []string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, text := range ids {
		id, err := change.ParseID(text)
		if err != nil {
			continue
		}
		stream := d.streamOf(id)
		if stream == nil {
			continue
		}
		settled, err := d.ledger.settled(id, stream)
		if err != nil {
			return fmt.Errorf("find %s in the saved state: %w", id, err)
		}
		if settled {
			d.settle(id, stream)
			continue
		}
		d.tailOf(stream.String()).add(id)
	}
	return nil
}

// settle notes that the inventory knows how the object is after the record: what an earlier one left in existence is no
// ghost.
func (d *deliveredSet) settle(id change.ID, stream *change.Stream) {
	if t := d.tails[stream.String()]; t != nil && t.objects[id.Key].UID == id.UID {
		delete(t.objects, id.Key)
	}
}

func (d *deliveredSet) streamOf(id change.ID) *change.Stream {
	for i := range d.streams {
		if isOf(id, &d.streams[i]) {
			return &d.streams[i]
		}
	}
	return nil
}

func (d *deliveredSet) tailOf(stream string) *tail {
	if d.tails == nil {
		d.tails = map[string]*tail{}
	}
	if d.tails[stream] == nil {
		d.tails[stream] = &tail{ids: map[change.ID]struct{}{}, deletes: map[string]struct{}{}, objects: map[change.Key]change.Entry{}}
	}
	return d.tails[stream]
}

// isOf says whether the id's record came from the stream.
func isOf(id change.ID, stream *change.Stream) bool {
	return id.Resource == stream.Resource.String() &&
		(stream.Namespace == "" || stream.Namespace == id.Key.Namespace)
}

func (d *deliveredSet) empty() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.tails) == 0
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

// take says whether the sink has the record, and forgets it then. What a stream has left is forgotten when its position
// has passed it.
func (d *deliveredSet) take(rec *change.Record, clusterUID string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	stream := rec.Stream.String()
	t := d.tails[stream]
	if t == nil {
		return false
	}
	id := rec.ID(clusterUID)
	found := t.take(rec, id)
	if rec.Op == change.Deleted {
		t.gone(id) // also if the attempt that tells it is repeated
	}
	if len(t.ids) == 0 || change.CompareVersions(rec.Position.ResourceVersion, t.newest) > 0 || endsReconcile(rec) {
		delete(d.tails, stream)
	}
	return found
}

// endsReconcile says whether everything that a log's tail could tell of the stream was compared with the server.
func endsReconcile(rec *change.Record) bool { return rec.Op == change.SnapshotEnd && rec.Sink == "" }

// gone notes that the sink was told of the delete.
func (t *tail) gone(id change.ID) {
	t.deletes[id.UID] = struct{}{}
	if t.objects[id.Key].UID == id.UID {
		delete(t.objects, id.Key)
	}
}

func (t *tail) add(id change.ID) {
	t.ids[id] = struct{}{}
	switch {
	case id.Op == change.Deleted:
		t.gone(id)
	case id.Op.OfObject():
		delete(t.deletes, id.UID) // it came back: an object can leave a selection and enter it again
		t.objects[id.Key] = change.Entry{Key: id.Key, UID: id.UID, ResourceVersion: id.ResourceVersion}
	}
	if change.CompareVersions(id.ResourceVersion, t.newest) > 0 {
		t.newest = id.ResourceVersion
	}
}

// take finds the record in whatever shape it was delivered. An object that a reconcile finds is there when any record
// of the same version is, and a delete that no watch saw when any delete of the same uid is.
func (t *tail) take(rec *change.Record, id change.ID) bool {
	switch {
	case id.Op == change.Replaced:
		return t.takeOp(id, change.Added) || t.takeOp(id, change.Updated) || t.takeOp(id, change.Replaced)
	case id.Op == change.Deleted && rec.FinalStateUnknown:
		_, found := t.deletes[id.UID]
		return found
	}
	return t.takeOp(id, id.Op)
}

func (t *tail) takeOp(id change.ID, op change.Op) bool {
	id.Op = op
	_, found := t.ids[id]
	delete(t.ids, id)
	return found
}
