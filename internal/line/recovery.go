package line

import (
	"sync"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/redo"
)

// Recovery is what a sink was given that the saved state does not know, or was not given that it should have. The
// listener takes from it, sources ask, and the committer passes, so that all use it under its lock.
type Recovery struct {
	mu        sync.Mutex
	Log       redo.Log
	Undeleted redo.Undeleted // what the log has lost the deletes of
	Missed    redo.Undeleted // what was deleted while the sink was absent
}

// With uses it; use takes no other lock and asks no store.
func (r *Recovery) With(use func(r *Recovery)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	use(r)
}

// IsOver says whether nothing of the log is to come again.
func (r *Recovery) IsOver() (over bool) {
	r.With(func(r *Recovery) { over = r.Log.Empty() })
	return over
}

// Streams are those that there are now.
func (r *Recovery) Streams() (all []*change.Stream) {
	r.With(func(r *Recovery) { all = r.Log.Present() })
	return all
}

// MissesNothing says whether the sink was told of all deletes that it had missed.
func (r *Recovery) MissesNothing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Missed.Settled()
}

// Enters notes what a record tells that goes in line, however much later the sink takes it.
func (r *Recovery) Enters(rec *change.Record, clusterUID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Log.Enters(rec, clusterUID)
	if rec.Op == change.Deleted {
		r.Undeleted.Told(rec)
		r.Missed.Enters(rec)
	}
}

// Saved notes that the state knows the records, and what listeners have told by themselves.
func (r *Recovery) Saved(sinkName string, records []*change.Record, told []checkpoint.Held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Missed.Leave(records)
	for i := range told {
		if told[i].Sink == sinkName {
			r.Missed.Saved(told[i].Entry.UID)
		}
	}
}

// SinkOnly are the objects of the stream that only the sink knows.
func (r *Recovery) SinkOnly(sinkName, stream string) (sinkOnly []change.SinkOnly) {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := map[string]bool{} // by uid
	add := func(entries []change.Entry, undeleted bool) {
		for _, entry := range entries {
			if !told[entry.UID] {
				sinkOnly = append(sinkOnly, change.SinkOnly{Sink: sinkName, Entry: entry, Undeleted: undeleted})
			}
			told[entry.UID] = true
		}
	}
	add(r.Missed.Of(stream), true)
	add(r.Undeleted.Of(stream), true)
	add(r.Log.Ask(stream), false)
	return sinkOnly
}
