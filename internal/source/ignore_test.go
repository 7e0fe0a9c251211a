package source

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// ignores makes the stream ignore every update to the versions.
func ignores(versions ...string) func(*Stream) {
	return func(s *Stream) {
		s.BeforeHidden = true
		s.Ignore = func(rec *change.Record) bool {
			for _, version := range versions {
				if rec.ResourceVersion == version {
					return true
				}
			}
			return false
		}
	}
}

// TestI2WhatIsIgnoredMovesThePositionAndIsNobodys: what is kept stays what was told last, and a delete is told.
func TestI2WhatIsIgnoredMovesThePositionAndIsNobodys(t *testing.T) {
	server := script(t, 100)
	server.watch = func(_ url.Values, w *watchWriter) {
		w.frames("ADDED a 101", "MODIFIED a 102", "MODIFIED b 103", "MODIFIED a 104", "MODIFIED a 105", "DELETED a 106")
		w.hold()
	}
	var compared []string
	server.prepare = func(s *Stream) {
		ignores("102", "103", "105")(s)
		ignore := s.Ignore
		s.Ignore = func(rec *change.Record) bool {
			compared = append(compared, rec.ResourceVersion+" with "+versionOf(rec.Before))
			return ignore(rec)
		}
	}
	r := newRecorder()
	r.keep()
	server.start(r, at(100))
	r.await(t, 6)
	// of b nothing is kept, so it is told
	want(t, "records", toldLines(r), "added a 101", "updated a 102 to nobody", "updated b 103", "updated a 104", "updated a 105 to nobody", "deleted a 106")
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.position.ResourceVersion != "106" {
		t.Errorf("the position is %+v", r.position)
	}
	want(t, "comparisons", strings.Join(compared, "\n"), "102 with 101", "104 with 101", "105 with 104")
}

// TestI4NothingIsIgnoredBesideASnapshot: the sink that it is for may hear of the object from the watch alone, and what
// a snapshot finds is told.
func TestI4NothingIsIgnoredBesideASnapshot(t *testing.T) {
	r := newRecorder("a 20", "b 20")
	server := script(t, 300)
	server.watch = func(_ url.Values, w *watchWriter) {
		w.behind("snapshot.begin 300 stale")
		w.frames("MODIFIED a 301")
		w.hold()
	}
	server.list = func(url.Values) (int, string) {
		r.has(t.Context(), "updated a 301")
		return http.StatusOK, podList(300, "", "a 20", "b 250")
	}
	server.prepare = ignores("301", "250")
	r.keep("a 20", "b 20")
	saved := at(100)
	saved.Selector = "another" // so that it is compared
	server.start(r, saved)
	r.wait(t, "snapshot.end 300 stale")
	for _, line := range []string{"updated a 301", "replaced b 250 last"} {
		if got := toldLines(r); !strings.Contains(got, line) {
			t.Errorf("want %q in\n%s", line, got)
		}
	}
}

// TestI4AGapBehindWhatWasIgnored hides nothing: what is as it was ignored is known, and what has changed since is told
// with what was told last before it, though nothing in it matters. So is what is gone.
func TestI4AGapBehindWhatWasIgnored(t *testing.T) {
	r := newRecorder("a 105", "b 105", "c 105") // each was ignored at last
	r.keep("a 101", "b 101", "c 101")
	server := script(t, 300)
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(300, "", "a 105", "b 250") }
	server.prepare = func(s *Stream) {
		s.Ignore = func(*change.Record) bool { return true }
	}
	saved := at(105)
	saved.Selector = "another" // so that it is compared
	server.start(r, saved)
	r.wait(t, "snapshot.end 300 stale")
	want(t, "records", toldLines(r), "replaced b 250 after 101", "deleted c 105 after 101 last")
}

// TestI2WhatIsIgnoredMayChangeBetweenTwoStarts: what was hidden until then is told with the next update, which has what
// was told last before it.
func TestI2WhatIsIgnoredMayChangeBetweenTwoStarts(t *testing.T) {
	r := newRecorder("a 105")
	r.keep("a 101")
	server := script(t, 105)
	server.watch = func(_ url.Values, w *watchWriter) {
		w.frames("MODIFIED a 106", "MODIFIED a 107")
		w.hold()
	}
	server.prepare = func(s *Stream) { // only the version differs from the one before
		s.Ignore = func(rec *change.Record) bool { return versionOf(rec.Before) != "101" }
	}
	server.start(r, at(105))
	r.await(t, 2)
	want(t, "records", toldLines(r), "updated a 106 after 101", "updated a 107 to nobody")
}
