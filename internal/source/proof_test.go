package source

import (
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// overtaken is a server whose first watch breaks after the frames, and that answers as told what it has of an object at
// the position then.
func overtaken(t *testing.T, frames []string, status int, body string) *apiServer {
	server := script(t, 300)
	var watches atomic.Int32
	server.watch = func(_ url.Values, w *watchWriter) {
		if watches.Add(1) == 1 {
			w.frames(frames...)
			w.cut()
		}
		w.frames("MODIFIED z 250")
		w.hold()
	}
	server.look = func(url.Values) (int, string) { return status, body }
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(300, "", "a 90", "z 250") }
	return server
}

func TestI4RestoredEtcdThatHasOvertakenThePositionIsAnEpoch(t *testing.T) {
	for name, c := range map[string]struct{ frame, body string }{
		"an older version":            {"MODIFIED a 110", podList(110, "", "a 90")},
		"another one at the position": {"MODIFIED a 110", podList(110, "", "a 105")},
		"never made":                  {"ADDED a 110", podList(110, "")},
		"another object":              {"MODIFIED a 110", strings.Replace(podList(110, "", "a 110"), "uid-a", "uid-b", 1)},
		"not deleted":                 {"DELETED a 110", podList(110, "", "a 90")},
	} {
		t.Run(name, func(t *testing.T) {
			server := overtaken(t, []string{c.frame}, http.StatusOK, c.body)
			r := newRecorder("a 90")
			server.start(r, at(100))
			lines := r.wait(t, "updated z 250")
			if !strings.Contains(lines, "gap 300 epoch") {
				t.Errorf("records are\n%s\nwant an epoch", lines)
			}
			if asked := server.asked(); strings.Count(asked, "look namespaces/n/pods a 110") != 1 {
				t.Errorf("requests are %s, want one look at exactly the position", asked)
			}
		})
	}
}

func TestHistoryThatIsTheSameOrCannotBeToldIsNoEpoch(t *testing.T) {
	for name, c := range map[string]struct {
		frame  string
		status int
		body   string
	}{
		"the same":             {"MODIFIED a 110", http.StatusOK, podList(110, "", "a 110")},
		"deleted as delivered": {"DELETED a 110", http.StatusOK, podList(110, "")},
		"compacted":            {"MODIFIED a 110", http.StatusGone, expired()},
		"not at that version":  {"MODIFIED a 110", http.StatusOK, podList(300, "", "a 290")},
	} {
		t.Run(name, func(t *testing.T) {
			server := overtaken(t, []string{c.frame}, c.status, c.body)
			r := newRecorder("a 90")
			server.start(r, at(100))
			if lines := r.wait(t, "updated z 250"); strings.Contains(lines, "gap") {
				t.Errorf("records are\n%s\nwant no gap", lines)
			}
			if asked := server.asked(); !strings.Contains(asked, "look namespaces/n/pods a 110") {
				t.Errorf("requests are %s, want a look", asked)
			}
		})
	}
}

// A watch that ends as it should costs no look.
func TestWatchThatEndsAsItShouldIsNotSuspect(t *testing.T) {
	server := script(t, 300)
	var watches atomic.Int32
	server.watch = func(_ url.Values, w *watchWriter) {
		if watches.Add(1) == 1 {
			w.frames("MODIFIED a 110")
			return
		}
		w.frames("MODIFIED a 120")
		w.hold()
	}
	server.look = func(url.Values) (int, string) { return http.StatusOK, podList(110, "") }
	r := newRecorder("a 90")
	server.start(r, at(100))
	want(t, "records", r.wait(t, "updated a 120"), "updated a 110", "updated a 120")
	if asked := server.asked(); strings.Contains(asked, "look") {
		t.Errorf("requests are %s", asked)
	}
}
