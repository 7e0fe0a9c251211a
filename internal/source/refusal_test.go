package source

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// TestI4VersionsThatSayNothingRefuseTheStream before anything is told of it: an update could not be told from what is
// known.
func TestI4VersionsThatSayNothingRefuseTheStream(t *testing.T) {
	for name, page := range map[string]string{
		"an empty list version":      `{"items":[],"metadata":{"resourceVersion":""}}`,
		"a list without a version":   `{"items":[],"metadata":{}}`,
		"a list version of 0":        `{"items":[],"metadata":{"resourceVersion":"0"}}`,
		"an opaque list version":     `{"items":[],"metadata":{"resourceVersion":"v1-abc"}}`,
		"an object without one":      `{"items":[{"metadata":{"name":"a"}}],"metadata":{"resourceVersion":"7"}}`,
		"an object of 0":             `{"items":[{"metadata":{"name":"a","resourceVersion":"0"}}],"metadata":{"resourceVersion":"7"}}`,
		"an object newer than lists": `{"items":[{"metadata":{"name":"a","resourceVersion":"8"}}],"metadata":{"resourceVersion":"7"}}`,
	} {
		play(t, 100, func(r *rig) {
			r.answers("version", func(url.Values) *http.Response { return reply(200, page) })
			r.start("lake")
			if r.want("lake"); !strings.Contains(r.failed(), "take the resource out of the configuration") {
				t.Errorf("%s: the stream is not refused", name)
			}
		})
	}
}

// TestI4TwoStatesAtOneVersionRefuseTheStream: the update is not told, and a gap says so. So does an object without a
// version, and what is read into memory that the frame before it had, where there are rules.
func TestI4TwoStatesAtOneVersionRefuseTheStream(t *testing.T) {
	for _, shape := range []func(*change.Record){nil, func(*change.Record) {}} {
		for why, last := range map[string]string{
			"two states of the object":      strings.Replace(event{"MODIFIED", "n/a", "uid-a", 150, ""}.frame(), `"metadata"`, `"spec":{},"metadata"`, 1),
			`has the resourceVersion ""`:    strings.Replace(event{"MODIFIED", "n/c", "uid-c", 160, ""}.frame(), `"160"`, `""`, 1),
			`a bookmark has the resourceVe`: strings.Replace(bookmarkFrame(160), `"160"`, `"x"`, 1),
		} {
			play(t, 100, func(r *rig) {
				r.config = func(config *Config) { config.Shape = shape }
				r.exist("lake", 100, "a 10", "b 20")
				r.start("lake")
				r.do("a 150", "b 150", "d 150")
				r.server.send(event{"MODIFIED", "n/a", "uid-a", 150, ""}.frame(), last, event{"ADDED", "n/e", "uid-e", 170, ""}.frame())
				r.pass(time.Minute)
				r.want("lake", "updated a 150", "updated b 150", "added d 150", "gap 149 stale unreadable")
				if !strings.Contains(r.failed(), why) {
					t.Errorf("the stream is not refused for: %s", why)
				}
				r.asked("watch 100")
			})
		}
	}
}

// TestI3VersionsAbove64BitsAreOrdered like any other.
func TestI3VersionsAbove64BitsAreOrdered(t *testing.T) {
	const digits = "1844674407370955161" // ten times as much is above 2^64
	play(t, 100, func(r *rig) {
		big := func(text string) string {
			return strings.ReplaceAll(text, `"resourceVersion":"`, `"resourceVersion":"`+digits)
		}
		r.server.answer = func(kind string, q url.Values) *http.Response {
			if kind == "version" || kind == "list" {
				return reply(200, big(`{"metadata":{"resourceVersion":"60"},"items":[`+items("a 10")[0]+`]}`))
			}
			return nil
		}
		r.start("lake")
		for _, ev := range []event{{"ADDED", "n/b", "uid-b", 70, ""}, {"DELETED", "n/b", "uid-b", 71, ""}, {"MODIFIED", "n/a", "uid-a", 80, ""}} {
			r.server.send(big(ev.frame()))
		}
		r.want("lake", "snapshot.begin "+digits+"60 initial", "replaced a "+digits+"10 last", "snapshot.end "+digits+"60 initial",
			"added b "+digits+"70", "deleted b "+digits+"71", "updated a "+digits+"80")
		r.stands("lake", digits+"79")
	})
}

// TestI4AListOfAnotherVersionIsNone: what was changed in between would be lost. A server that never lists exactly is
// refused.
func TestI4AListOfAnotherVersionIsNone(t *testing.T) {
	for _, wrong := range []int{2, maxRestarts} {
		play(t, 300, func(r *rig) {
			r.server.do("a 250", "b 260")
			lists := 0
			r.answers("list", func(url.Values) *http.Response {
				if lists++; lists <= wrong {
					return pageOf(290, "", items("a 250")...)
				}
				return nil
			})
			r.start("lake")
			r.pass(time.Minute)
			got := strings.Join(r.log("lake").take(), ", ")
			if ended := strings.HasSuffix(got, "snapshot.end 300 initial"); ended != (wrong < maxRestarts) || ended != !strings.Contains(r.failed(), "so the stream is refused") {
				t.Errorf("behind %d lists of another version is told %s", wrong, got)
			}
		})
	}
}

// TestI4AnObjectIsNoNewerThanItsList, and has a version, unless it cannot be read.
func TestI4AnObjectIsNoNewerThanItsList(t *testing.T) {
	o := origin{collection: collection{stream: pods()}}
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
		err := o.checkVersion(&c.object, c.list)
		if _, refused := errors.AsType[*UnorderedError](err); refused != c.refused || (err != nil) != c.refused {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestI4OneListThatIsExactForgivesThoseBeforeIt, and other failures say nothing.
func TestI4OneListThatIsExactForgivesThoseBeforeIt(t *testing.T) {
	o, inexact := origin{collection: collection{stream: pods()}}, &inexactError{"300", "290"}
	for _, between := range []error{nil, errChanged} {
		for range maxRestarts - 1 {
			if err := o.listed(inexact); err != inexact {
				t.Errorf("got %v", err)
			}
		}
		if err := o.listed(between); err != between {
			t.Errorf("got %v", err)
		}
	}
	if _, refused := errors.AsType[*UnorderedError](o.listed(inexact)); !refused {
		t.Errorf("%d lists of another version in a row are not refused", maxRestarts)
	}
}

// broken is the item or frame with annotations that no object has.
func broken(text string) string {
	return strings.Replace(text, `"metadata":{`, `"metadata":{"annotations":[],`, 1)
}

// TestI4AnObjectThatCannotBeReadIsAGapForItsKey, from the list and from the watch, and ends nothing.
func TestI4AnObjectThatCannotBeReadIsAGapForItsKey(t *testing.T) {
	play(t, 100, func(r *rig) {
		r.server.do("a 10", "b 20", "c 30")
		all := items("a 10", "b 20", "c 30")
		all[1] = broken(all[1])
		r.answers("list", func(url.Values) *http.Response { return pageOf(100, "", all...) })
		r.start("lake")
		r.do("a 101")
		r.server.send(broken(event{"MODIFIED", "n/c", "uid-c", 102, ""}.frame()), broken(event{"DELETED", "n/b", "uid-b", 104, ""}.frame()))
		r.do("a 105")
		r.want("lake", "snapshot.begin 100 initial", "replaced a 10", "gap b 20 policy unreadable", "replaced c 30 last", "snapshot.end 100 initial",
			"updated a 101", "gap c 102 policy unreadable", "deleted b 104 unseen", "updated a 105")
		r.asked("watch 100, list 100")
	})
}

// TestI4WhatIsNobodysAndCannotBeReadIsAGapOfItsStream: it may have been broken on its way, so it is read again once.
func TestI4WhatIsNobodysAndCannotBeReadIsAGapOfItsStream(t *testing.T) {
	play(t, 100, func(r *rig) {
		r.exist("lake", 100, "a 10", "b 20")
		r.start("lake")
		r.do("a 101")
		for range 2 {
			r.server.send("<html>")
			r.pass(time.Second)
		}
		r.do("b 201")
		r.want("lake", "updated a 101", "gap 101 stale", "snapshot.begin 101 stale", "snapshot.end 101 stale", "updated b 201")
	})
}

// TestI4AListedItemThatIsNobodysDeletesNothingBesideIt: it may be what the sink has at its place.
func TestI4AListedItemThatIsNobodysDeletesNothingBesideIt(t *testing.T) {
	for name, all := range map[string][]string{
		"between": {"b 20", "", "e 50"}, "at last": {"b 20", "c 30", "", ""}, "at first": {"", "b 20", "c 30"}, "unsorted": {"c 30", "b 20", "", "e 50"},
	} {
		play(t, 200, func(r *rig) {
			r.has("lake", 100, "a 10", "b 20", "c 30", "d 40", "e 50")
			r.server.forget(200)
			r.answers("list", func(url.Values) *http.Response {
				listed := items(all...)
				for i := range listed {
					if all[i] == "" {
						listed[i] = "null"
					}
				}
				return pageOf(200, "", listed...)
			})
			r.start("lake")
			r.pass(time.Second)
			if r.want("lake", "gap 200 gone", "snapshot.begin 200 gone", "gap 200 policy unreadable", "snapshot.end 200 gone"); t.Failed() {
				t.Error(name)
			}
		})
	}
}
