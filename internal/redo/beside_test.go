package redo

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestI3ADeleteThatAComparisonFindsIsNotToldBehindWhatCameLater: the object left the selection in the gap, and entered
// it again after the version of the list. The log has that, and the watch brings it again. Of a resource that is
// no more no watch brings anything.
func TestI3ADeleteThatAComparisonFindsIsNotToldBehindWhatCameLater(t *testing.T) {
	for _, reason := range []change.Reason{change.Stale, change.Removed} {
		a := change.Entry{Key: change.Key{Namespace: "n", Name: "a"}, UID: "uid-a", ResourceVersion: "10"}
		state := &saved{position: change.ComparedPosition("300", "", ""), objects: map[change.Key]change.Entry{a.Key: a}}
		l := logOf(t, state, update(pods(), "a", 500))
		gone := found(update(pods(), "a", 10), change.Deleted, reason, "300")
		gone.FinalStateUnknown = true
		if has, _ := l.Take(gone, &Taking{ClusterUID: clusterUID}); has == (reason == change.Removed) {
			t.Errorf("%s: the delete is left out: %t", reason, has)
		}
	}
}

// TestI4ASnapshotBesideTheWatchSettlesNothingThatIsNotSaved: a crash came before the object was saved, which the watch
// told and a full snapshot gave after it. Its delete would never be told otherwise.
func TestI4ASnapshotBesideTheWatchSettlesNothingThatIsNotSaved(t *testing.T) {
	told, given := update(pods(), "a", 5), found(update(pods(), "a", 5), change.Sync, change.Resync, "5")
	key := told.Key
	for _, c := range []struct {
		inventory map[change.Key]change.Entry
		want      int
	}{
		{nil, 1},
		{map[change.Key]change.Entry{key: {Key: key, UID: told.UID, ResourceVersion: "2"}}, 1},
		{map[change.Key]change.Entry{key: {Key: key, UID: told.UID, ResourceVersion: "5"}}, 0},
	} {
		state := &saved{position: change.Position{ResourceVersion: "3"}, objects: c.inventory}
		if got := logOf(t, state, told, given).Ask("pods"); len(got) != c.want {
			t.Errorf("with the inventory %v the sink-only objects are %+v, want %d", c.inventory, got, c.want)
		}
	}
}
