package redo

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestI3ADeleteThatAComparisonFindsIsNotToldBehindWhatCameLater: the object left the selection in the gap, and entered
// it again behind the version of the list. The log has that, and the watch brings it again. Of a resource that is not
// served any more no watch brings anything.
func TestI3ADeleteThatAComparisonFindsIsNotToldBehindWhatCameLater(t *testing.T) {
	for _, unserved := range []bool{false, true} {
		a := change.Entry{Key: change.Key{Namespace: "n", Name: "a"}, UID: "uid-a", ResourceVersion: "10"}
		state := &saved{position: change.ComparedPosition("300", "", ""), objects: map[change.Key]change.Entry{a.Key: a}}
		l := logOf(t, state, update(pods(), "a", 500))
		gone := found(update(pods(), "a", 10), change.Deleted, change.Stale, "300")
		gone.FinalStateUnknown, gone.Snapshot.Unserved = true, unserved
		if has, _ := l.Take(gone, &Taking{ClusterUID: clusterUID}); has == unserved {
			t.Errorf("unserved: %t: the delete is left out: %t", unserved, has)
		}
	}
}
