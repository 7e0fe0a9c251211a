package checkpoint

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestI3I4TheDeletesOfOneVersionAreKnownBesideAComparison: which of them are saved, over several commits and another
// start, and no others.
func TestI3I4TheDeletesOfOneVersionAreKnownBesideAComparison(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	gone := func(uid, version string) *change.Record {
		position := change.InitialPosition(version, "", "")
		position.Complete = false
		return &change.Record{
			Stream: &change.Stream{Resource: change.Resource{Version: "v1", Name: "events"}}, Op: change.Deleted,
			Key: change.Key{Namespace: "n", Name: uid}, UID: uid, ResourceVersion: version, Position: position,
		}
	}
	must(t, s.Commit(Batch{Records: []*change.Record{gone("a", "7"), gone("b", "8")}}))
	must(t, s.Commit(Batch{Records: []*change.Record{gone("c", "8")}}))
	must(t, s.Close())
	s = open(t, dir)
	for uid, want := range map[string]bool{"a": false, "b": true, "c": true, "d": false} {
		if got, err := s.Ended("events", "8", uid); got != want || err != nil {
			t.Errorf("the delete of %s was delivered: %t, %v, want %t", uid, got, err, want)
		}
	}
	if got, err := s.Ended("events", "9", "b"); got || err != nil {
		t.Errorf("a delete at another version was delivered: %t, %v", got, err)
	}
	must(t, s.Close())
}
