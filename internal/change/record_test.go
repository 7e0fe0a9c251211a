package change

import "testing"

// What is kept is what all sinks were given: not what no sink may have (I9), and not what one of them alone was given.
func TestI9WhatNoSinkWasGivenIsNotKept(t *testing.T) {
	object := []byte(`{}`)
	for name, c := range map[string]struct {
		rec           Record
		kept, changed bool
	}{
		"update":                 {Record{Op: Updated, Keep: true, Object: object}, true, true},
		"found by a comparison":  {Record{Op: Replaced, Keep: true, Object: object}, true, true},
		"delete":                 {Record{Op: Deleted, Keep: true, Object: object}, false, true},
		"delete that no one saw": {Record{Op: Deleted, Keep: true}, false, true},
		"filtered":               {Record{Op: Updated, Keep: true, Filtered: true}, false, false},
		"filtered delete":        {Record{Op: Deleted, Keep: true, Filtered: true}, false, true},
		"withheld":               {Record{Op: Updated, Keep: true, Object: object, Withheld: "filter"}, false, false},
		"withheld delete":        {Record{Op: Deleted, Keep: true, Object: object, Withheld: "filter"}, false, true},
		"for one sink":           {Record{Op: Sync, Keep: true, Object: object, Sink: "a"}, false, false},
		"not to be kept":         {Record{Op: Updated, Object: object}, false, false},
		"end of a snapshot":      {Record{Op: SnapshotEnd, Keep: true}, false, false},
	} {
		kept, changed := c.rec.Keeps()
		if (kept != nil) != c.kept || changed != c.changed {
			t.Errorf("%s: keeps %q, %t; want something: %t, %t", name, kept, changed, c.kept, c.changed)
		}
	}
}
