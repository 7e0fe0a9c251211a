package source

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

func requestedFor(sinks ...string) (owed []change.Owed) {
	for _, name := range sinks {
		owed = append(owed, change.Owed{Sink: name, Reason: change.Requested})
	}
	return owed
}

// abandoning makes the stream of the server tell the recorder of snapshots that end before they are complete.
func abandoning(server *apiServer, r *recorder) (abandoned *atomic.Int32) {
	abandoned = new(atomic.Int32)
	server.prepare = func(s *Stream) {
		s.Observer.Abandoned = func(change.Stream, *change.Snapshot) {
			abandoned.Add(1)
			r.changed.Broadcast()
		}
	}
	return abandoned
}

// readerOver returns when the stream's reader has read all that was due.
func readerOver(s *Stream) {
	s.schedule.mu.Lock()
	over := s.schedule.reader.over
	s.schedule.mu.Unlock()
	<-over
}

// TestASnapshotThatIsWithdrawnHasNoEnd while one that shares its list goes on where its sink is.
func TestASnapshotThatIsWithdrawnHasNoEnd(t *testing.T) {
	server, gate := script(t, 100), make(chan struct{})
	names := manyPods(6)
	all := pages(100, names)
	server.list = func(q url.Values) (int, string) {
		if q.Get("continue") != "" {
			<-gate
		}
		return all(q)
	}
	r := newRecorder(names...)
	abandoned := abandoning(server, r)
	s := server.start(r, at(100))
	s.Request(requestedFor("lake", "bus")...)
	r.until(t, "the first page", func() bool { return slices.Contains(r.lines, "sync p001 2 to bus") })
	s.Withdraw(requestedFor("lake")...)
	if due := s.Due(); !slices.Equal(due, requestedFor("bus")) {
		t.Errorf("due are %+v, want that for bus", due)
	}
	r.until(t, "the end of what is withdrawn", func() bool { return abandoned.Load() == 1 })
	close(gate)
	lines := r.wait(t, "snapshot.end 100 requested to bus")
	if strings.Contains(lines, "snapshot.end 100 requested to lake") || strings.Contains(lines, "p005 6 to lake") {
		t.Errorf("records are\n%s\nwant no end for lake", lines)
	}
	for _, name := range names {
		if !strings.Contains(lines, "sync "+name+" to bus") {
			t.Errorf("%s was never sent to bus", name)
		}
	}
	readerOver(s)
	if len(s.Due()) != 0 || len(r.failures) != 0 {
		t.Errorf("due are %+v, failures %q", s.Due(), r.failures)
	}
	s.Request(change.Owed{Sink: "lake", Reason: change.Requested, After: "n/p002"})
	lines = r.wait(t, "snapshot.end 100 requested to lake")
	if resumed := lines[strings.LastIndex(lines, "snapshot.begin"):]; strings.Contains(resumed, "p002 3 to lake") || !strings.Contains(resumed, "p003 4 to lake") {
		t.Errorf("it goes on with\n%s", resumed)
	}
}

// TestI4WhatASnapshotHasBegunToTellOfAnObjectItTellsWhole though it is withdrawn: an object that was made again is told
// to be gone, and to be there.
func TestI4WhatASnapshotHasBegunToTellOfAnObjectItTellsWhole(t *testing.T) {
	server, gate := script(t, 300), make(chan struct{})
	server.list = func(q url.Values) (int, string) {
		if q.Get("continue") != "" {
			<-gate
		}
		return http.StatusOK, strings.Replace(podList(100, "more", "a 10", "again 40"), "uid-again", "uid-later", 1)
	}
	r := newRecorder("a 10", "again 30")
	abandoned := abandoning(server, r)
	observed := server.prepare
	var s *Stream
	server.prepare = func(stream *Stream) { observed(stream); s = stream }
	r.shape = func(rec *change.Record) {
		if rec.Op == change.Deleted {
			s.Withdraw(requestedFor("lake")...)
		}
	}
	server.start(r, at(100)).Request(requestedFor("lake")...)
	lines := r.until(t, "the end of what is withdrawn", func() bool { return abandoned.Load() == 1 })
	close(gate)
	want(t, "records", lines, "snapshot.begin 100 requested to lake", "sync a 10 to lake", "deleted again 30 unseen", "replaced again 40")
}

// TestWhatIsWithdrawnIsNotRunFromTheStateEither, until it is asked for again.
func TestWhatIsWithdrawnIsNotRunFromTheStateEither(t *testing.T) {
	saved := requestedFor("lake", "bus")
	s := NewSession(Config{}, nil)
	s.Request(saved...)
	s.Withdraw(saved[0])
	if due, got := s.Due(), s.due(saved); !slices.Equal(due, saved[1:]) || !slices.Equal(got, saved[1:]) {
		t.Errorf("due are %+v, and of the state %+v", due, got)
	}
	again := saved[0]
	again.Generation = 1
	if got := s.due([]change.Owed{again}); len(got) != 1 {
		t.Error("what is owed anew is withdrawn, too")
	}
	s.Request(saved[0])
	if got := s.due(saved); !slices.Equal(got, saved) {
		t.Errorf("asked for again, of the state %+v are due", got)
	}
}
