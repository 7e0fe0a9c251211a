package delivery

import (
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/redo"
)

// readerOf reads the ids in a sink's log.
func readerOf(store *checkpoint.Store, clusterUID string) redo.Reader {
	return redo.Reader{
		Ledger: redo.Ledger{State: store}, ClusterUID: clusterUID, Foreign: foreign(store, clusterUID),
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
