package delivery

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// The delete of a sink-only object says which reconcile found it, also before a record of the watch.
func TestI4SinkOnlyObjectBeforeARecordOfTheWatchIsOfTheReconcile(t *testing.T) {
	l, frame := past{shape: func(*change.Record) {}}, &change.Snapshot{ID: "20.1"}
	gone := []change.Entry{{Key: change.Key{Name: "b"}, UID: "uid-b"}}
	if batch := l.appendGone(nil, gone, update(pods(), "b", 21), frame); len(batch) != 1 || batch[0].Snapshot != frame || batch[0].Key.Name != "b" {
		t.Errorf("before it are %+v", batch)
	}
}
