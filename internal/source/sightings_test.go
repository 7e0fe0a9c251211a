package source

import (
	"strconv"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

func watched(op change.Op, name, version string) *change.Record {
	return &change.Record{Op: op, Key: keyOf(name), UID: "uid-" + name, ResourceVersion: version}
}

// TestI2WhatIsSeenIsToldByItsContent: other content is an error within one watch, and told where another one brings it.
func TestI2WhatIsSeenIsToldByItsContent(t *testing.T) {
	seen, rec := sightings{}, watched(change.Updated, "a", "20")
	for _, step := range []struct {
		watch  int
		object string
		has    bool
		err    error
	}{{1, "x", false, nil}, {1, "x", true, nil}, {1, "y", false, errSameVersion}, {2, "x", true, nil}, {3, "y", false, nil}, {3, "x", false, errSameVersion}} {
		rec.Object = []byte(step.object)
		if has, err := seen.note(rec, step.watch); has != step.has || err != step.err {
			t.Errorf("%+v: %t, %v", step, has, err)
		}
	}
	seen.forget()
	if again, err := seen.note(rec, 4); again || err != nil {
		t.Errorf("a record of another version is known: %t, %v", again, err)
	}
}

// TestI6WhatIsSeenAtOneVersionIsBounded: what is not remembered may be told twice.
func TestI6WhatIsSeenAtOneVersionIsBounded(t *testing.T) {
	seen := sightings{}
	for i := range maxSeen + 10 {
		_, err := seen.note(watched(change.Deleted, strconv.Itoa(i), "20"), 1)
		must(t, err)
	}
	first, _ := seen.note(watched(change.Deleted, "1", "20"), 1)
	last, _ := seen.note(watched(change.Deleted, strconv.Itoa(maxSeen+1), "20"), 1)
	if len(seen) != maxSeen {
		t.Errorf("%d records are remembered, want %d", len(seen), maxSeen)
	}
	if !first || last {
		t.Error("what is remembered is not, or what is not is")
	}
}
