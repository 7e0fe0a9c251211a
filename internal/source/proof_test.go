package source

import (
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
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

// TestI4AProofHoldsInOneHistoryOnly: in the state that was told last, and in no other.
func TestI4AProofHoldsInOneHistoryOnly(t *testing.T) {
	object := func(uid, version string) *frame.Object { return &frame.Object{UID: uid, ResourceVersion: version} }
	told, gone := proofOf(named(change.Updated, "a", "7")), proofOf(named(change.Deleted, "a", "7"))
	for what, c := range map[string]struct {
		proof
		has   *frame.Object // nil for none
		holds bool
	}{
		"as told":          {told, object("uid-a", "7"), true},
		"an older version": {told, object("uid-a", "6"), false},
		"another object":   {told, object("uid-b", "7"), false},
		"none":             {told, nil, false},
		"gone as told":     {gone, nil, true},
		"not gone":         {gone, object("uid-a", "7"), false},
	} {
		found := c.has != nil
		if !found {
			c.has = &frame.Object{}
		}
		if got := c.proof.holds(c.has, found); got != c.holds {
			t.Errorf("%s: it holds %t", what, got)
		}
	}
}

// TestI6AProofHoldsNoListInMemory: the names of a listed object are part of memory that it shares with others.
func TestI6AProofHoldsNoListInMemory(t *testing.T) {
	page := "shop web u 7"
	listed := proof{key: change.Key{Namespace: page[:4], Name: page[5:8]}, uid: page[9:10], version: page[11:]}
	got := listed.detached()
	if got != listed {
		t.Errorf("got %+v, want %+v", got, listed)
	}
	for i, text := range []string{got.key.Namespace, got.key.Name, got.uid, got.version} {
		if at := uintptr(unsafe.Pointer(unsafe.StringData(text))) - uintptr(unsafe.Pointer(unsafe.StringData(page))); at < uintptr(len(page)) {
			t.Errorf("text %d is part of the page", i)
		}
	}
}
