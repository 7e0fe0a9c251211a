package source

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
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

// An interrupted initial snapshot goes on at its own version, after what was delivered of it, and the watch begins
// there.
func TestI4AnInterruptedInitialSnapshotGoesOnAtItsVersion(t *testing.T) {
	server := script(t, 200)
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(100, "", "a 10", "b 20", "c 30") }
	server.watch = func(_ url.Values, w *watchWriter) {
		w.behind("snapshot.end 100 initial")
		w.frames("MODIFIED a 101", "DELETED b 150", "ADDED d 200")
		w.hold()
	}
	r := newRecorder("a 10")
	server.start(r, begunAt("100"))
	want(t, "records", r.wait(t, "added d 200"), "snapshot.begin 100 initial", "replaced b 20", "replaced c 30", "snapshot.end 100 initial",
		"updated a 101", "deleted b 150", "added d 200")
	want(t, "requests", server.asked(), "watch 100, list 100")
}

// The watch does not wait for the initial snapshot, and moves its position. What it told is not told again in an older
// form, nor what it told to be gone.
func TestI3I4TheWatchGoesOnBesideTheInitialSnapshot(t *testing.T) {
	server := script(t, 200)
	r := newRecorder()
	server.list = func(url.Values) (int, string) {
		r.has(t.Context(), "added d 150")
		return http.StatusOK, podList(100, "", "a 10", "b 20", "c 30")
	}
	server.watch = func(_ url.Values, w *watchWriter) {
		w.frames("MODIFIED a 101", "DELETED b 120", "ADDED d 150")
		w.hold()
	}
	r.shape = func(rec *change.Record) {
		if rec.Key.Name == "d" && rec.Position != (change.Position{ResourceVersion: "150", Epoch: "epoch-1", Selector: begunAt("").Selector}) {
			t.Errorf("beside the snapshot a record has the position %+v", rec.Position)
		}
	}
	server.version = func() int { return 100 }
	server.start(r, change.Position{})
	want(t, "records", r.wait(t, "snapshot.end 100 initial"), "snapshot.begin 100 initial",
		"updated a 101", "deleted b 120", "added d 150", "replaced c 30", "snapshot.end 100 initial")
	if position := (change.Position{ResourceVersion: "150", Epoch: "epoch-1"}); r.position != position {
		t.Errorf("position is %+v, want %+v", r.position, position)
	}
}

// What is left of a comparison after a gap goes on in another life, from where the watch came, without another gap.
func TestI4AnInterruptedComparisonGoesOnWithoutAnotherGap(t *testing.T) {
	server := script(t, 300)
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(250, "", "a 10", "b 220") }
	server.watch = func(_ url.Values, w *watchWriter) {
		w.behind("snapshot.end 250 stale")
		w.frames("MODIFIED a 301")
		w.hold()
	}
	r := newRecorder("a 10", "gone 20")
	server.start(r, change.ComparedPosition("250", "epoch-1", ""))
	want(t, "records", r.wait(t, "updated a 301"), "snapshot.begin 250 stale", "replaced b 220", "deleted gone 20 unseen",
		"snapshot.end 250 stale", "updated a 301")
	want(t, "requests", server.asked(), "watch 250, list 250")
}

// The delete of what had the name before lies in the gap, and is told before the object that has it now.
func TestI3I4WhatTheWatchFindsInThePlaceOfAnotherIsToldBehindItsDelete(t *testing.T) {
	server := script(t, 300)
	r := newRecorder("a 10", "b 20")
	server.list = func(url.Values) (int, string) {
		r.has(t.Context(), "deleted b 302")
		return http.StatusOK, podList(300, "", "b 20")
	}
	server.watch = func(q url.Values, w *watchWriter) {
		if q.Get("resourceVersion") != "300" {
			w.frames("GONE")
			return
		}
		for _, f := range []string{"ADDED a 301", "DELETED b 302"} {
			w.Write([]byte(strings.Replace(frameOf(f), `"uid-`, `"uid-new-`, 1) + "\n"))
		}
		w.hold()
	}
	server.start(r, at(100))
	want(t, "records", r.wait(t, "snapshot.end 300 gone"), "gap 300 gone", "snapshot.begin 300 gone",
		"deleted a 10 unseen", "added a 301", "deleted b 20 unseen", "deleted b 302", "snapshot.end 300 gone")
}

// So does one that the server interrupts.
func TestI4ABrokenInitialSnapshotGoesOnAtItsVersion(t *testing.T) {
	server := script(t, 100)
	failures := 0
	server.list = func(q url.Values) (int, string) {
		if q.Get("continue") == "" {
			return http.StatusOK, podList(100, "next", "a 10")
		}
		if failures++; failures == 1 {
			return http.StatusInternalServerError, "{}"
		}
		return http.StatusOK, podList(100, "", "b 20")
	}
	server.watch = func(_ url.Values, w *watchWriter) {
		w.behind("snapshot.end 100 initial")
		w.frames("MODIFIED a 150")
		w.hold()
	}
	r := newRecorder()
	server.start(r, change.Position{})
	want(t, "records", r.wait(t, "updated a 150"), "snapshot.begin 100 initial", "replaced a 10", "replaced b 20",
		"snapshot.end 100 initial", "updated a 150")
	want(t, "requests", server.asked(), "watch 100, list 100, list  next, list  next")
}

// A list that the server has forgotten goes on at a newer version: the watch has told what came between.
func TestI4AnInitialSnapshotGoesOnBehindAForgottenList(t *testing.T) {
	server := script(t, 200)
	server.list = func(q url.Values) (int, string) {
		if q.Get("resourceVersion") == "100" {
			return http.StatusGone, expired()
		}
		return http.StatusOK, podList(200, "", "a 150", "c 30")
	}
	server.watch = func(_ url.Values, w *watchWriter) {
		w.frames("MODIFIED a 150", "DELETED b 160", "BOOKMARK 200")
		w.hold()
	}
	r := newRecorder("a 10", "b 20")
	server.start(r, begunAt("100"))
	lines := r.wait(t, "snapshot.end 100 initial")
	for _, line := range []string{"snapshot.begin 100 initial", "updated a 150", "deleted b 160", "replaced c 30"} {
		if strings.Count(lines, line) != 1 {
			t.Errorf("%s is not told once:\n%s", line, lines)
		}
	}
	if strings.Contains(lines, "gap") || strings.Contains(lines, "replaced a") {
		t.Errorf("a gap, or something twice:\n%s", lines)
	}
}

// What was changed since the snapshot began may be missing where the watch cannot go on from its version.
func TestI4AnInitialSnapshotThatIsForgottenIsAGap(t *testing.T) {
	server := script(t, 200)
	server.watch = func(q url.Values, w *watchWriter) {
		if q.Get("resourceVersion") == "100" {
			w.frames("GONE")
			return
		}
		w.hold()
	}
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

// An interrupted initial snapshot is compared, after a gap, where it cannot go on: of another selection, another
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
