package source

import (
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// begunAt is the saved position of an initial snapshot that was interrupted.
func begunAt(version string) change.Position { return change.InitialPosition(version, "epoch-1", "") }

// The version of an initial snapshot is saved before its begin is told.
func TestI4TheVersionOfAnInitialSnapshotIsSavedFirst(t *testing.T) {
	server := script(t, 100)
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(100, "", "a 10") }
	r := newRecorder()
	var saved []change.Position
	r.drained = func() { saved = append(saved, r.position) }
	r.room = 2 // the begin is refused
	server.start(r, change.Position{})
	r.until(t, "the end of the life", func() bool { return r.room < 0 })
	if len(r.lines) != 0 || !slices.Contains(saved, begunAt("100")) {
		t.Errorf("%q is told, and saved was %+v, want nothing, and %+v", r.lines, saved, begunAt("100"))
	}
}

// An interrupted initial snapshot goes on at its own version, behind what was delivered of it, and the watch begins
// there.
func TestI4AnInterruptedInitialSnapshotGoesOnAtItsVersion(t *testing.T) {
	server := script(t, 200)
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(100, "", "a 10", "b 20", "c 30") }
	server.watch = func(_ url.Values, w *watchWriter) {
		w.frames("MODIFIED a 101", "DELETED b 150", "ADDED d 200")
		w.hold()
	}
	r := newRecorder("a 10")
	server.start(r, begunAt("100"))
	want(t, "records", r.wait(t, "added d 200"), "snapshot.begin 100 initial", "replaced b 20", "replaced c 30", "snapshot.end 100 initial",
		"updated a 101", "deleted b 150", "added d 200")
	want(t, "requests", server.asked(), "list 100, watch 100")
}

// So does one that the server interrupts.
func TestI4ABrokenInitialSnapshotGoesOnAtItsVersion(t *testing.T) {
	server := script(t, 100)
	server.list = func(q url.Values) (int, string) {
		if server.version() == 100 {
			server.version = func() int { return 200 }
			return http.StatusOK, podList(100, "next", "a 10")
		}
		if q.Get("continue") != "" {
			return http.StatusInternalServerError, "{}"
		}
		return http.StatusOK, podList(100, "", "a 10", "b 20")
	}
	server.watch = func(_ url.Values, w *watchWriter) { w.frames("MODIFIED a 150"); w.hold() }
	r := newRecorder()
	server.start(r, change.Position{})
	want(t, "records", r.wait(t, "updated a 150"), "snapshot.begin 100 initial", "replaced a 10",
		"snapshot.begin 100 initial", "replaced b 20", "snapshot.end 100 initial", "updated a 150")
	want(t, "requests", server.asked(), "list 100, list  next, list 100, watch 100")
}

// What was changed since the snapshot began may be missing where the server has forgotten its version.
func TestI4AnInitialSnapshotThatIsForgottenIsAGap(t *testing.T) {
	server := script(t, 200)
	server.list = func(q url.Values) (int, string) {
		if q.Get("resourceVersion") == "100" {
			return http.StatusGone, expired()
		}
		return http.StatusOK, podList(200, "", "a 150", "c 30")
	}
	r := newRecorder("a 10", "b 20")
	var gap *change.GapError
	r.shape = func(rec *change.Record) {
		if rec.Op == change.Gap {
			gap = rec.Snapshot.Gap()
		}
	}
	server.start(r, begunAt("100"))
	want(t, "records", r.wait(t, "snapshot.end 200 gone"), "snapshot.begin 100 initial", "gap 200 gone", "snapshot.begin 200 gone",
		"replaced a 150", "replaced c 30", "deleted b 20 unseen", "snapshot.end 200 gone")
	if gap.Delivered != "100" || gap.Proven != "200" {
		t.Errorf("the gap is %+v, want it from 100 to 200", gap)
	}
}

// An interrupted initial snapshot is compared, behind a gap, where it cannot go on: of another selection, another
// cluster, a server in the past, and where no version was saved.
func TestI4AnInitialSnapshotThatCannotGoOnIsAGap(t *testing.T) {
	other, restored := begunAt("100"), begunAt("300")
	other.Selector += "labels=app=x&fields="
	elsewhere := change.InitialPosition("100", "epoch-0", "")
	for reason, saved := range map[string][]change.Position{"stale": {other, {}}, "epoch": {elsewhere, restored}} {
		for _, position := range saved {
			server := script(t, 200)
			server.list = func(url.Values) (int, string) { return http.StatusOK, podList(200, "", "a 150") }
			r := newRecorder("b 20")
			server.start(r, position)
			want(t, "records", r.wait(t, "snapshot.end 200 "+reason), "gap 200 "+reason, "snapshot.begin 200 "+reason,
				"replaced a 150", "deleted b 20 unseen", "snapshot.end 200 "+reason)
		}
	}
}
