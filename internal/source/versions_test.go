package source

import (
	"errors"
	"testing"

	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// TestI4AnObjectIsNoNewerThanItsList, and has a version, unless it cannot be read.
func TestI4AnObjectIsNoNewerThanItsList(t *testing.T) {
	stream := pods()
	v := versions{stream: &stream}
	for what, c := range map[string]struct {
		object  frame.Object
		list    string
		refused bool
	}{
		"as new as the list":          {frame.Object{ResourceVersion: "100"}, "100", false},
		"newer":                       {frame.Object{ResourceVersion: "101"}, "100", true},
		"newer, and longer":           {frame.Object{ResourceVersion: "1000"}, "999", true},
		"of a watch":                  {frame.Object{ResourceVersion: "101"}, "", false},
		"without a version":           {frame.Object{}, "100", true},
		"of version 0":                {frame.Object{ResourceVersion: "0"}, "100", true},
		"unreadable":                  {frame.Object{Err: errNoName}, "100", false},
		"unreadable, and newer":       {frame.Object{ResourceVersion: "101", Err: errNoName}, "100", true},
		"unreadable, and in the list": {frame.Object{ResourceVersion: "99", Err: errNoName}, "100", false},
	} {
		err := v.check(&c.object, c.list)
		if _, refused := errors.AsType[*UnorderedError](err); refused != c.refused || (err != nil) != c.refused {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestI4OneListThatIsExactForgivesThoseBeforeIt, and other failures say nothing.
func TestI4OneListThatIsExactForgivesThoseBeforeIt(t *testing.T) {
	stream := pods()
	v, inexact := versions{stream: &stream}, &inexactError{"300", "290"}
	several := func() {
		for range maxRestarts - 1 {
			if err := v.ended(inexact); err != inexact {
				t.Errorf("got %v", err)
			}
		}
	}
	several()
	if err := v.ended(nil); err != nil {
		t.Errorf("got %v", err)
	}
	several()
	if err := v.ended(errChanged); err != errChanged {
		t.Errorf("got %v", err)
	}
	if _, refused := errors.AsType[*UnorderedError](v.ended(inexact)); !refused {
		t.Errorf("%d lists of another version in a row are not refused", maxRestarts)
	}
}
