package pipeline

import (
	"slices"
	"sync"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/redo"
)

// recovery is what a sink was given that the saved state does not know, or was not given that it should have. The
// listener takes from it, sources ask, and the committer passes, so that all use it under its lock.
type recovery struct {
	mu        sync.Mutex
	log       redo.Log
	undeleted redo.Undeleted // what the log has lost the deletes of
	missed    redo.Undeleted // what was deleted while the sink was absent
}

// with uses it; use takes no other lock and asks no store.
func (r *recovery) with(use func(r *recovery)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	use(r)
}

// isOver says whether nothing of the log is to come again.
func (r *recovery) isOver() (over bool) {
	r.with(func(r *recovery) { over = r.log.Empty() })
	return over
}

// streams are those that there are now.
func (r *recovery) streams() (all []*change.Stream) {
	r.with(func(r *recovery) { all = r.log.Present() })
	return all
}

// enters notes what a record tells that goes in line, however much later the sink takes it.
func (r *recovery) enters(rec *change.Record, clusterUID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.Enters(rec, clusterUID)
	if rec.Op == change.Deleted {
		r.undeleted.Told(rec)
		r.missed.Told(rec)
	}
}

// sinkOnly are the objects of the stream that only the sink knows.
func (r *recovery) sinkOnly(sinkName, stream string) (sinkOnly []change.SinkOnly) {
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
	add(r.missed.Of(stream), true)
	add(r.undeleted.Of(stream), true)
	add(r.log.Ask(stream), false)
	return sinkOnly
}

// readerOf reads the ids in a sink's log.
func readerOf(config *Config) redo.Reader {
	return redo.Reader{
		Ledger: redo.Ledger{State: config.Store}, ClusterUID: config.ClusterUID, Foreign: foreign(config.Store, config.ClusterUID),
	}
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
