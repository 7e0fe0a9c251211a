package source

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// broken is the item or frame with text in it that is no JSON.
func broken(text string) string { return strings.Replace(text, `"metadata"`, `"x":tru ,"metadata"`, 1) }

// TestI4AnObjectThatCannotBeReadIsAGapForItsKey, from the list and from the watch, and ends nothing.
func TestI4AnObjectThatCannotBeReadIsAGapForItsKey(t *testing.T) {
	server := script(t, 100)
	server.list = func(url.Values) (int, string) {
		page := podList(100, "", "a 10", "b 20", "c 30")
		return http.StatusOK, strings.Replace(page, `{"metadata":{"name":"b"`, `{"x":tru ,"metadata":{"name":"b"`, 1)
	}
	server.watch = func(_ url.Values, w *watchWriter) {
		w.behind("snapshot.end 100 initial")
		w.frames("MODIFIED a 101")
		for _, frame := range []string{"MODIFIED c 102", "DELETED b 104"} {
			w.Write([]byte(broken(frameOf(frame)) + "\n"))
		}
		w.frames("MODIFIED a 105")
		w.hold()
	}
	r := newRecorder()
	server.start(r, change.Position{})
	want(t, "records", r.wait(t, "updated a 105"),
		"snapshot.begin 100 initial", "replaced a 10", "replaced b 20 withheld: unreadable", "replaced c 30", "snapshot.end 100 initial",
		"updated a 101", "updated c 102 withheld: unreadable", "deleted b 104 unseen", "updated a 105")
	want(t, "requests", server.asked(), "watch 100, list 100")
}

// TestI4WhatIsNobodysAndCannotBeReadIsAGapOfItsStream: it may have been broken on its way, so it is read again once.
func TestI4WhatIsNobodysAndCannotBeReadIsAGapOfItsStream(t *testing.T) {
	server := script(t, 200)
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(200, "", "a 101", "b 20") }
	server.watch = func(q url.Values, w *watchWriter) {
		if q.Get("resourceVersion") == "100" {
			w.frames("MODIFIED a 101")
		}
		if q.Get("resourceVersion") != "200" {
			w.Write([]byte("<html>\n"))
			return
		}
		w.behind("snapshot.end 200 stale")
		w.frames("MODIFIED b 201")
		w.hold()
	}
	r := newRecorder("a 10", "b 20")
	server.start(r, at(100))
	want(t, "records", r.wait(t, "updated b 201"),
		"updated a 101", "gap 200 stale", "snapshot.begin 200 stale", "snapshot.end 200 stale", "updated b 201")
	want(t, "requests", server.asked(), "watch 100, watch 100, watch 200, list 200")
}

// TestI4AListedItemThatIsNobodysDeletesNothingBesideIt: it may be what the inventory has at its place.
func TestI4AListedItemThatIsNobodysDeletesNothingBesideIt(t *testing.T) {
	for name, c := range map[string]struct {
		items []string
		want  []string
	}{
		"between":  {[]string{"b 20", "", "e 50"}, []string{"deleted a 10 unseen"}},
		"at last":  {[]string{"b 20", "c 30", "", ""}, []string{"deleted a 10 unseen"}},
		"at first": {[]string{"", "b 20", "c 30"}, []string{"deleted d 40 unseen", "deleted e 50 unseen"}},
		"unsorted": {[]string{"c 30", "b 20", "", "e 50"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			server := script(t, 200)
			server.list = func(url.Values) (int, string) {
				page := podList(200, "", c.items...)
				nobody := strings.Replace(podJSON("", ""), `"kind":"Pod","apiVersion":"v1",`, "", 1)
				return http.StatusOK, strings.ReplaceAll(page, nobody, "null")
			}
			var once sync.Once
			server.watch = func(_ url.Values, w *watchWriter) {
				gone := false
				once.Do(func() { gone = true })
				if gone {
					w.frames("GONE")
					return
				}
				w.hold()
			}
			r := newRecorder("a 10", "b 20", "c 30", "d 40", "e 50")
			server.start(r, at(100))
			var told []string
			for line := range strings.SplitSeq(r.wait(t, "snapshot.end 200 gone"), "\n") {
				if strings.HasPrefix(line, "deleted") || strings.HasPrefix(line, "gap") {
					told = append(told, line)
				}
			}
			if name == "unsorted" { // what the first attempt told before it was known is told again by the second
				told = told[len(told)-1:]
				want(t, "records", strings.Join(told, "\n"), "gap 200 policy")
				return
			}
			lines := append([]string{"gap 200 gone", "gap 200 policy"}, c.want...)
			want(t, "records", strings.Join(told, "\n"), lines...)
		})
	}
}
