package source

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

func resync(sinks ...string) []change.Owed {
	var owed []change.Owed
	for _, name := range sinks {
		owed = append(owed, change.Owed{Sink: name, Reason: change.Resync})
	}
	return owed
}

// What the watch never told of is drift: an update, a delete, an object that was made again, and one that is new.
func TestI4ResyncCorrectsDriftForAllAndGivesTheRestToThoseThatAsked(t *testing.T) {
	server := script(t, 300)
	server.list = func(url.Values) (int, string) {
		again := strings.Replace(podList(100, "", "a 10", "again 40", "drifted 25", "new 50"), "uid-again", "uid-later", 1)
		return http.StatusOK, again
	}
	r := newRecorder("a 10", "again 30", "drifted 20", "gone 15")
	ended := make(chan change.Counts, 1)
	server.prepare = func(s *Stream) {
		s.Observer.Reconciled = func(_ change.Stream, snapshot *change.Snapshot) { ended <- snapshot.Counts }
	}
	s := server.start(r, at(100))
	s.Request(resync("lake", "bus")...)
	want(t, "records", r.wait(t, "snapshot.end 100 resync to bus"),
		"snapshot.begin 100 resync to lake", "snapshot.begin 100 resync to bus",
		"sync a 10 to lake", "sync a 10 to bus", "deleted again 30 unseen", "replaced again 40", "replaced drifted 25", "replaced new 50", "deleted gone 15 unseen",
		"snapshot.end 100 resync to lake", "snapshot.end 100 resync to bus")
	want(t, "drift", strings.Join(r.drift, "\n"),
		"deleted again 30 -> ", "replaced again  -> 40", "replaced drifted 20 -> 25", "replaced new  -> 50", "deleted gone 15 -> ")
	if asked := server.asked(); strings.Count(asked, "list 100") != 1 {
		t.Errorf("requests are %s, want one list at exactly 100", asked)
	}
	if counts := <-ended; counts != (change.Counts{Replaced: 3, Deleted: 2, Synced: 1}) {
		t.Errorf("objects are counted as %+v, though two sinks have one that is the same", counts)
	}
}

func TestTheWatchGoesOnBesideAResync(t *testing.T) {
	server := script(t, 300)
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(100, "", "a 10") }
	ended := make(chan struct{})
	server.watch = func(_ url.Values, w *watchWriter) {
		w.frames("BOOKMARK 100")
		<-ended
		w.frames("MODIFIED a 150")
		w.hold()
	}
	r := newRecorder("a 10")
	s := server.start(r, at(100))
	r.wait(t, "bookmark 100")
	s.Request(resync("lake")...)
	r.wait(t, "snapshot.end 100 resync to lake")
	close(ended)
	want(t, "records", r.wait(t, "updated a 150"),
		"bookmark 100", "snapshot.begin 100 resync to lake", "sync a 10 to lake", "snapshot.end 100 resync to lake", "updated a 150")
	want(t, "requests", server.asked(), "watch 100, list 100")
}

// Two deletes share a version, and a resync falls between them. The list shows the second one, too; nothing is left
// out.
func TestI4ResyncBetweenRecordsOfOneVersionLosesNone(t *testing.T) {
	saved := at(100)
	saved.Complete = false
	server := script(t, 300)
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(100, "") }
	r := newRecorder("b 20") // a was deleted at 100
	server.prepare = func(s *Stream) { s.silence.least = 10 * time.Millisecond }
	server.start(r, saved).Request(resync("lake")...)
	r.wait(t, "snapshot.end 100 resync to lake")
	if lines := strings.Join(r.lines, "\n"); strings.Count(lines, "deleted b") != 1 {
		t.Errorf("records are\n%s\nwant one delete of b", lines)
	}
}

func TestI4RestoredEtcdIsAnEpochAlsoWhereASnapshotIsOwed(t *testing.T) {
	server := script(t, 50)
	server.list = func(q url.Values) (int, string) {
		if q.Get("resourceVersion") == "100" {
			return http.StatusGatewayTimeout, `{"metadata":{},"status":"Failure","message":"Timeout: Too large resource version: 100, current: 50","reason":"Timeout","code":504}`
		}
		return http.StatusOK, podList(50, "", "a 40")
	}
	r := newRecorder("a 90")
	server.start(r, at(100)).Request(resync("lake")...)
	want(t, "records", r.wait(t, "snapshot.end 50 resync to lake"),
		"gap 50 epoch", "snapshot.begin 50 epoch", "replaced a 40", "snapshot.end 50 epoch",
		"snapshot.begin 50 resync to lake", "sync a 40 to lake", "snapshot.end 50 resync to lake")
}

// The etcd was restored and has overtaken the position before the exporter asked: nothing tells the two histories
// apart, and the next resync finds what differs.
func TestI4ResyncCorrectsWhatARestoredEtcdThatOvertookThePositionLeaves(t *testing.T) {
	server := script(t, 300)
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(150, "", "kept 10", "rewritten 95") }
	server.watch = func(q url.Values, w *watchWriter) {
		if q.Get("resourceVersion") == "100" {
			w.frames("ADDED later 150", "BOOKMARK 150")
		}
		w.hold()
	}
	r := newRecorder("kept 10", "rewritten 90", "undone 98")
	s := server.start(r, at(100))
	r.wait(t, "bookmark 150")
	r.lines = nil
	server.list = func(url.Values) (int, string) {
		return http.StatusOK, podList(150, "", "kept 10", "later 150", "rewritten 95")
	}
	s.Request(resync("lake")...)
	want(t, "records", r.wait(t, "snapshot.end 150 resync to lake"),
		"snapshot.begin 150 resync to lake", "sync kept 10 to lake", "sync later 150 to lake", "replaced rewritten 95", "deleted undone 98 unseen",
		"snapshot.end 150 resync to lake")
}

// rangeToken is the token of a server that reads a range of etcd's keys.
func rangeToken(version int, last string) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"v":"meta.k8s.io/v1","rv":%d,"start":"/%s\u0000"}`, version, last))
}

// pages serves names as a list at the version, three objects a page.
func pages(version int, names []string) func(url.Values) (int, string) {
	var mu sync.Mutex // a list that was cut off may still be asked for
	at := map[string]int{}
	return func(q url.Values) (int, string) {
		mu.Lock()
		defer mu.Unlock()
		from := at[q.Get("continue")]
		until, token := from+3, ""
		if until >= len(names) {
			until = len(names)
		} else {
			last, _, _ := strings.Cut(names[until-1], " ")
			token = rangeToken(version, "n/"+last)
			at[token] = until
		}
		return http.StatusOK, podList(version, token, names[from:until]...)
	}
}

func manyPods(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("p%03d %d", i, i+1))
	}
	return names
}

// Each life delivers so many records and dies. What was acknowledged is not sent again, so the loop ends.
func TestI4CrashLoopOfAnInitialSnapshotEnds(t *testing.T) {
	const objects, room = 60, 9
	r := newRecorder()
	lives := 0
	complete := func() bool { return r.position == at(1000) }
	for ; !complete(); lives++ {
		if lives > objects/(room-2) {
			t.Fatalf("the snapshot is not complete after %d lives:\n%s", lives, strings.Join(r.lines, "\n"))
		}
		t.Run("life", func(t *testing.T) {
			server := script(t, 1000)
			server.list = pages(1000, manyPods(objects))
			r.room = room
			server.start(r, r.position)
			r.until(t, "the end of the life", func() bool { return r.room < 0 || complete() })
		})
	}
	if n := strings.Count(strings.Join(r.lines, "\n"), "replaced"); n != objects {
		t.Errorf("%d objects were sent, want each of %d once", n, objects)
	}
}

func TestI4CrashLoopOfASnapshotForOneSinkEnds(t *testing.T) {
	const objects, room = 150, firstPage + 4
	names := manyPods(objects)
	r := newRecorder(names...)
	complete := func() bool { return slices.Contains(r.lines, "snapshot.end 1000 newsink to lake") }
	for lives := 0; !complete(); lives++ {
		if lives > objects/(room-4) {
			t.Fatalf("the snapshot is not complete after %d lives:\n%s", lives, strings.Join(r.lines, "\n"))
		}
		t.Run("life", func(t *testing.T) {
			server := script(t, 1000)
			server.list = pages(1000, names)
			r.room = room
			server.start(r, at(1000)).Request(change.Owed{Sink: "lake", Reason: change.NewSink, After: r.after["lake"]})
			r.until(t, "the end of the life", func() bool { return r.room < 0 || complete() })
		})
	}
	for _, name := range names {
		if !slices.Contains(r.lines, "sync "+name+" to lake") {
			t.Errorf("%s was never sent", name)
		}
	}
}

// A server whose lists have no order: where a snapshot came to says nothing of what is after it.
func TestI4SnapshotOfAnUnsortedListBeginsAnew(t *testing.T) {
	server := script(t, 100)
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(100, "", "b 20", "a 10") }
	r := newRecorder("a 10", "b 20")
	s := server.start(r, at(100))
	s.Request(change.Owed{Sink: "lake", Reason: change.NewSink, After: "n/a"})
	lines := r.wait(t, "snapshot.end 100 newsink to lake")
	last := lines[strings.LastIndex(lines, "snapshot.begin"):]
	if !strings.Contains(last, " a 10") || !strings.Contains(last, " b 20") {
		t.Errorf("records are\n%s\nwant a and b", lines)
	}
	s.Request(change.Owed{Sink: "bus", Reason: change.NewSink, After: "n/b"})
	for _, line := range []string{"sync a 10 to bus", "sync b 20 to bus"} {
		if lines := r.wait(t, "snapshot.end 100 newsink to bus"); !strings.Contains(lines, line) {
			t.Errorf("records are\n%s\nwant %s", lines, line)
		}
	}
	if r.after["lake"] != "" {
		t.Errorf("the snapshot is said to have come to %s", r.after["lake"])
	}
}

// What is asked for while it waits is one snapshot, of the newest generation.
func TestRequestsThatWaitAreOne(t *testing.T) {
	s := NewStream(Config{Stream: pods(), Saved: at(100), ClusterUID: "epoch-1", Observer: NopObserver()})
	owed := func(reason change.Reason, sink string, generation uint64) change.Owed {
		return change.Owed{Reason: reason, Sink: sink, Generation: generation}
	}
	s.Request(owed(change.Requested, "lake", 0), owed(change.Lost, "bus", 0), owed(change.Requested, "bus", 0))
	s.Request(owed(change.Requested, "lake", 1))
	s.schedule.add(change.Owed{Reason: change.Gone})
	check := func(what string, got []change.Owed, want ...change.Owed) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s is %+v, want %+v", what, got, want)
		}
	}
	check("reconcile", s.schedule.begin(), change.Owed{Reason: change.Gone})
	running := []change.Owed{owed(change.Requested, "lake", 1), owed(change.Requested, "bus", 0)}
	check("first", s.schedule.snapshots.begin(), running...)
	s.Request(running...)                        // they run
	s.Request(owed(change.Requested, "lake", 2)) // this one does not
	s.schedule.snapshots.done(false)
	check("second", s.schedule.snapshots.begin(), owed(change.Lost, "bus", 0))
	s.schedule.snapshots.done(true)
	check("second again", s.schedule.snapshots.begin(), owed(change.Lost, "bus", 0))
	s.schedule.snapshots.done(false)
	check("last", s.schedule.snapshots.begin(), owed(change.Requested, "lake", 2))
	s.schedule.snapshots.done(false)
	check("rest", s.schedule.snapshots.begin())
}

// Were the end of a watch that was stopped for a resync a failure, the Reflector would wait before it opens the next.
func TestWatchThatIsStoppedEndsAsItShould(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	read, write := io.Pipe()
	s := NewStream(Config{Stream: pods(), Saved: at(100), ClusterUID: "epoch-1", Observer: NopObserver()})
	frames := frame.NewReader(read, s.origin.collection.options())
	d := &observedDecoder{decoder: &decoder{stream: s, body: read, frames: frames}, ctx: ctx, watcher: &watcher{Stream: s}}
	broken := errors.New("use of closed connection")
	if err := write.CloseWithError(broken); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Decode(); !errors.Is(err, broken) || !s.origin.trust.suspect.Load() {
		t.Errorf("a broken watch ends with %v", err)
	}
	stop()
	if _, _, err := d.Decode(); err != io.EOF {
		t.Errorf("a stopped watch ends with %v, want EOF", err)
	}
}
