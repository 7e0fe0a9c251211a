package source

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestI3SinkOnlyObjectsOfOneNameEndInTheirOrder: several objects of one name were missed, and are read in the order of
// their uids. A listener tells of an earlier one before the end of a later one, so that must not come first.
func TestI3SinkOnlyObjectsOfOneNameEndInTheirOrder(t *testing.T) {
	key := change.Key{Namespace: "a", Name: "x"}
	object := func(uid, version string) change.SinkOnly {
		return change.SinkOnly{Sink: "s", Entry: change.Entry{Key: key, UID: uid, ResourceVersion: version}, Undeleted: true}
	}
	var uids string
	for _, o := range newSinkOnly([]change.SinkOnly{object("c", "11"), object("a", "5"), object("b", "9")})[key] {
		uids += o.UID
	}
	if uids != "abc" {
		t.Errorf("their ends are told in the order %s, want abc", uids)
	}
}
