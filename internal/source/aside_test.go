package source

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestI3MissedDeletesLeaveTheWatchItsTurn: a list may show at once that very many objects are gone.
func TestI3MissedDeletesLeaveTheWatchItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := manyPods(2 * turnObjects)
		recorder := newRecorder(names...)
		s := NewStream(Config{Stream: pods(), Inventory: recorder, Saved: at(100), ClusterUID: "epoch-1", Observer: NopObserver()})
		s.line = recorder
		r := s.newReading(requestedFor("lake"))
		r.difference = r.newDifference(r.due, "100", nil)
		s.turns.take()
		told := -1
		go func() {
			s.turns.take()
			defer s.turns.give()
			told = len(recorder.lines)
		}()
		synctest.Wait()
		for _, name := range names {
			name, _, _ = strings.Cut(name, " ")
			entry := recorder.objects["n/"+name]
			if err := r.suspect(t.Context(), unlisted{entry: entry, list: "100"}); err != nil {
				t.Fatal(err)
			}
		}
		s.turns.give()
		if told < 0 || told > turnObjects {
			t.Errorf("the watch had its turn behind %d deletes, want at most %d", told, turnObjects)
		}
	})
}

// TestI6MoreMissedDeletesThanMayWaitAreToldWhenTheWatchWasSilent: a stream without bookmarks may never move.
func TestI6MoreMissedDeletesThanMayWaitAreToldWhenTheWatchWasSilent(t *testing.T) {
	server := script(t, 100)
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(100, "") }
	server.watch = func(_ url.Values, w *watchWriter) { w.hold() }
	server.prepare = func(s *Stream) { s.silence.least = 10 * time.Millisecond }
	r := newRecorder()
	for i := range maxPassed + 1 {
		key := change.Key{Namespace: "n", Name: strconv.Itoa(i)}
		r.objects[key.String()] = change.Entry{Key: key, UID: "uid", ResourceVersion: "1"}
	}
	saved := at(100)
	saved.Complete = false // other changes may share its version
	server.start(r, saved).Request(requestedFor("lake")...)
	r.wait(t, "snapshot.end 100 requested to lake")
	if len(r.objects) > 0 {
		t.Errorf("%d objects were not told to be gone", len(r.objects))
	}
	if len(r.failures) > 0 {
		t.Errorf("it failed: %s", r.failures[0])
	}
}

// TestI6NoMoreThanMayWaitForTheWatch do so.
func TestI6NoMoreThanMayWaitForTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, saved := newRecorder("a 10"), at(100)
		saved.Complete = false
		s := NewStream(Config{Stream: pods(), Inventory: recorder, Saved: saved, ClusterUID: "epoch-1", Observer: NopObserver()})
		s.line, s.turns.open = recorder, 1
		r := s.newReading(requestedFor("lake"))
		r.watch.number = 1
		r.difference = r.newDifference(r.due, "100", nil)
		one := unlisted{entry: recorder.objects["n/a"], list: "100"}
		for range maxPassed {
			r.suspects = append(r.suspects, one)
		}
		s.turns.take()
		began := time.Now()
		if err := r.suspect(t.Context(), one); err != nil || time.Since(began) != minSilence || len(r.suspects) > 1 {
			t.Errorf("%d wait, after %s, %v, want one after a silence of %s", len(r.suspects), time.Since(began), err, minSilence)
		}
		s.turns.give()
	})
}

// TestI6WhatIsRememberedIsBoundedWhileListsFail: the watch waits for the sinks, all is forgotten, and a newer list is
// read.
func TestI6WhatIsRememberedIsBoundedWhileListsFail(t *testing.T) {
	server, flooded := script(t, 100), make(chan struct{})
	var stream *Stream
	server.list = func(q url.Values) (int, string) {
		select {
		case <-flooded:
		default:
			return http.StatusInternalServerError, `{"kind":"Status","metadata":{},"status":"Failure","code":500}`
		}
		if q.Get("resourceVersion") == "100" {
			return http.StatusOK, podList(100, "", "a 10", "b 20")
		}
		return http.StatusOK, podList(200, "", "a 10")
	}
	server.watch = func(_ url.Values, w *watchWriter) {
		w.behind("snapshot.begin 100 requested to lake")
		stream.turns.take()
		for i := range floodedRecent - 1 {
			key := change.Key{Namespace: "n", Name: "z" + strconv.Itoa(i)}
			stream.recent.note(&change.Record{Op: change.Deleted, Key: key, ResourceVersion: "100"})
		}
		server.version = func() int { return 200 }
		stream.turns.give()
		w.frames("DELETED b 150", "BOOKMARK 150")
		w.behind("bookmark 150")
		stream.turns.take()
		if n := len(stream.recent.byKey); n > 1 {
			t.Errorf("%d objects are remembered", n)
		}
		stream.turns.give()
		close(flooded)
		w.hold()
	}
	ready := make(chan struct{})
	server.prepare = func(s *Stream) { stream = s; close(ready) }
	r := newRecorder("a 10", "b 20")
	server.start(r, at(100)).Request(requestedFor("lake")...)
	<-ready
	lines := r.wait(t, "snapshot.end 100 requested to lake")
	if strings.Contains(lines, " b 20") || strings.Count(lines, "deleted b") != 1 || !strings.Contains(lines, "sync a 10 to lake") {
		t.Errorf("records are\n%s\nwant a, and b deleted once", lines)
	}
}
