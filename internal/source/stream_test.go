package source

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// script is a server that stands at a version, lists what it is told, and holds watches open.
func script(t *testing.T, version int) *apiServer {
	return &apiServer{
		t:       t,
		version: func() int { return version },
		list:    func(url.Values) (int, string) { return http.StatusOK, podList(version, "") },
		watch:   func(_ url.Values, w *watchWriter) { w.hold() },
	}
}

func want(t *testing.T, what, got string, lines ...string) {
	t.Helper()
	if wanted := strings.Join(lines, "\n"); got != wanted {
		t.Errorf("%s:\n%s\nwant:\n%s", what, got, wanted)
	}
}

func TestI4FreshStateBeginsWithAPagedSnapshot(t *testing.T) {
	server := script(t, 100)
	server.list = func(q url.Values) (int, string) {
		if q.Get("continue") == "" {
			return http.StatusOK, podList(100, "next", "a 10", "b 20")
		}
		return http.StatusOK, podList(100, "", "c 30")
	}
	server.watch = func(_ url.Values, w *watchWriter) {
		w.behind("snapshot.end 100 initial")
		w.frames("ADDED d 101", "MODIFIED a 102", "DELETED b 103", "BOOKMARK 110")
		w.hold()
	}
	r := newRecorder()
	server.start(r, change.Position{})
	want(t, "records", r.wait(t, "bookmark 110"),
		"snapshot.begin 100 initial", "replaced a 10", "replaced b 20", "replaced c 30", "snapshot.end 100 initial",
		"added d 101", "updated a 102", "deleted b 103", "bookmark 110")
	want(t, "requests", server.asked(), "watch 100, list 100, list  next")
	if position := (change.Position{ResourceVersion: "110", Complete: true, Epoch: "epoch-1"}); r.position != position {
		t.Errorf("position is %+v, want %+v", r.position, position)
	}
}

func TestI2RestartContinuesTheWatchWithoutAList(t *testing.T) {
	server := script(t, 200)
	server.watch = func(_ url.Values, w *watchWriter) { w.frames("MODIFIED a 150"); w.hold() }
	r := newRecorder("a 10")
	server.start(r, at(100))
	want(t, "records", r.wait(t, "updated a 150"), "updated a 150")
	want(t, "requests", server.asked(), "watch 100")
}

func TestI2RestartAtAnIncompletePositionRepeatsNothing(t *testing.T) {
	saved := at(100)
	saved.Complete = false
	server := script(t, 200)
	server.watch = func(_ url.Values, w *watchWriter) {
		w.frames("DELETED a 100", "DELETED b 100", "MODIFIED c 100", "ADDED a 150") // a and c were delivered
		w.hold()
	}
	r := newRecorder("b 20", "c 100")
	server.start(r, saved)
	want(t, "records", r.wait(t, "added a 150"), "deleted b 100", "added a 150")
	want(t, "requests", server.asked(), "watch 99")
}

func TestI3CutConnectionLosesAndRepeatsNothing(t *testing.T) {
	server := script(t, 200)
	watches := 0
	server.watch = func(_ url.Values, w *watchWriter) {
		if watches++; watches == 1 {
			w.frames("DELETED a 150", "DELETED b 150")
			w.Write([]byte(frameOf("MODIFIED c 151")[:40]))
			w.cut()
		}
		w.frames("DELETED a 150", "DELETED b 150", "DELETED d 150", "MODIFIED c 151")
		w.hold()
	}
	r := newRecorder("a 1", "b 1", "c 1", "d 1")
	server.start(r, at(100))
	want(t, "records", r.wait(t, "updated c 151"), "deleted a 150", "deleted b 150", "deleted d 150", "updated c 151")
	want(t, "requests", server.asked(), "watch 100, watch 149")
}

func TestI4GoneIsAGapAndThenExactlyTheDifference(t *testing.T) {
	server := script(t, 300)
	server.list = func(url.Values) (int, string) {
		return http.StatusOK, podList(300, "", "changed 250", "new 260", "same 30")
	}
	server.watch = func(q url.Values, w *watchWriter) {
		if q.Get("resourceVersion") == "100" {
			w.frames("GONE")
			return
		}
		w.behind("snapshot.end 300 gone")
		w.frames("MODIFIED new 301")
		w.hold()
	}
	r := newRecorder("changed 10", "gone 20", "same 30")
	server.start(r, at(100))
	want(t, "records", r.wait(t, "updated new 301"),
		"gap 300 gone", "snapshot.begin 300 gone", "replaced changed 250", "replaced new 260", "deleted gone 20 unseen",
		"snapshot.end 300 gone", "updated new 301")
}

func TestI4WhatOnlyOneSinkSawIsDeletedThere(t *testing.T) {
	object := func(name, uid, version string) change.SinkOnly {
		return change.SinkOnly{Sink: "lake", Entry: change.Entry{Key: change.Key{Namespace: "n", Name: name}, UID: uid, ResourceVersion: version}}
	}
	server := script(t, 300)
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(300, "", "again 250", "there 260") }
	server.watch = func(q url.Values, w *watchWriter) {
		if q.Get("resourceVersion") == "100" {
			w.frames("GONE")
		}
		w.hold()
	}
	r := newRecorder("gone 20")
	r.sinkOnly = []change.SinkOnly{
		object("gone", "uid-gone", "30"),     // a later version of what all know
		object("lost", "uid-lost", "150"),    // added and deleted meanwhile
		object("again", "uid-before", "160"), // recreated meanwhile
		object("there", "uid-there", "170"),  // still there
	}
	server.start(r, at(100))
	want(t, "records", r.wait(t, "snapshot.end 300 gone"),
		"gap 300 gone", "snapshot.begin 300 gone", "deleted again 160 unseen to lake", "replaced again 250",
		"replaced there 260", "deleted gone 30 unseen", "deleted lost 150 unseen to lake", "snapshot.end 300 gone")
}

// TestI4AFullSnapshotTellsOfWhatIsUndeleted, and leaves to the watch what the watch will bring.
func TestI4AFullSnapshotTellsOfWhatIsUndeleted(t *testing.T) {
	object := func(name, uid, version string, undeleted bool) change.SinkOnly {
		key := change.Key{Namespace: "n", Name: name}
		return change.SinkOnly{Sink: "lake", Entry: change.Entry{Key: key, UID: uid, ResourceVersion: version}, Undeleted: undeleted}
	}
	server := script(t, 100)
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(100, "", "again 50", "there 60") }
	server.watch = func(_ url.Values, w *watchWriter) { w.hold() }
	r := newRecorder("again 50", "there 60")
	r.sinkOnly = []change.SinkOnly{object("again", "uid-before", "30", true), object("lost", "uid-lost", "130", true), object("there", "uid-there", "30", true), object("new", "uid-new", "130", false)}
	stream := server.start(r, at(100))
	stream.Request(change.Owed{Sink: "lake", Reason: change.Lost})
	want(t, "records", r.wait(t, "snapshot.end 100 lost to lake"),
		"gap 100 lost to lake", "snapshot.begin 100 lost to lake", "deleted again 30 unseen to lake", "sync again 50 to lake", "sync there 60 to lake",
		"deleted lost 130 unseen to lake", "snapshot.end 100 lost to lake")
}

func TestI4ExpiredPagesStartOverAndRepeatNothing(t *testing.T) {
	server := script(t, 110)
	attempts := 0
	server.list = func(q url.Values) (int, string) {
		switch {
		case q.Get("continue") == "":
			return http.StatusOK, podList(110, "next", "a 10")
		case attempts == 0:
			attempts++
			return http.StatusGone, expired()
		}
		return http.StatusOK, podList(110, "", "b 20")
	}
	saved := at(100)
	saved.Selector = change.Interrupted
	r := newRecorder()
	server.start(r, saved)
	want(t, "records", r.wait(t, "snapshot.end 110 stale"),
		"gap 110 stale", "snapshot.begin 110 stale", "replaced a 10", "replaced b 20", "snapshot.end 110 stale")
}

func TestI4ServerInThePastIsAnEpoch(t *testing.T) {
	server := script(t, 50)
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(50, "", "a 40") }
	server.watch = func(_ url.Values, w *watchWriter) { w.frames("MODIFIED a 51"); w.hold() }
	r := newRecorder("a 90", "b 95")
	server.start(r, at(100))
	want(t, "records", r.wait(t, "updated a 51"),
		"gap 50 epoch", "snapshot.begin 50 epoch", "replaced a 40", "deleted b 95 unseen", "snapshot.end 50 epoch", "updated a 51")
	want(t, "requests", server.asked(), "list 50, watch 50")
}

func TestI4PositionOfAnotherClusterIsAnEpoch(t *testing.T) {
	saved := at(100)
	saved.Epoch = "epoch-0"
	r := newRecorder("a 90")
	script(t, 100).start(r, saved)
	want(t, "records", r.wait(t, "snapshot.end 100 epoch"),
		"gap 100 epoch", "snapshot.begin 100 epoch", "deleted a 90 unseen", "snapshot.end 100 epoch")
}

func TestI4OtherSelectionIsCompared(t *testing.T) {
	saved := at(100)
	saved.Selector = "labels=app=x&fields="
	r := newRecorder("a 90")
	script(t, 100).start(r, saved)
	r.wait(t, "snapshot.end 100 stale")
}

func TestI4WatchesThatEndAtOnceAreStale(t *testing.T) {
	server := script(t, 200)
	server.watch = func(q url.Values, w *watchWriter) {
		if q.Get("resourceVersion") == "200" {
			w.hold()
		}
	}
	r := newRecorder("a 90")
	server.start(r, at(100))
	want(t, "records", r.wait(t, "snapshot.end 200 stale"),
		"gap 200 stale", "snapshot.begin 200 stale", "deleted a 90 unseen", "snapshot.end 200 stale")
}

// A connection that is cut again and again says nothing of the position.
func TestI4WatchesThatAreCutAtOnceAreNotStale(t *testing.T) {
	server := script(t, 200)
	cuts := 0
	server.watch = func(q url.Values, w *watchWriter) {
		if cuts++; cuts <= maxEmpty {
			w.cut()
		}
		w.frames("MODIFIED a 150")
		w.hold()
	}
	r := newRecorder("a 90")
	server.start(r, at(100))
	want(t, "records", r.wait(t, "updated a 150"), "updated a 150")
}

func TestSnapshotForOneSinkIsExactlyAtThePosition(t *testing.T) {
	server := script(t, 300)
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(100, "", "a 10", "drifted 25") }
	r := newRecorder("a 10", "drifted 20")
	s := server.start(r, at(100))
	s.Request(change.Owed{Sink: "lake", Reason: change.NewSink})
	want(t, "records", r.wait(t, "snapshot.end 100 newsink to lake"),
		"snapshot.begin 100 newsink to lake", "sync a 10 to lake", "replaced drifted 25", "snapshot.end 100 newsink to lake")
	if asked := server.asked(); !strings.Contains(asked, "list 100") {
		t.Errorf("requests are %s, want a list at exactly 100", asked)
	}
}

// A list goes on at the newest version where the server has forgotten that of the position. What is newer than the
// position is the watch's to tell, and the snapshot ends after it.
func TestI4SnapshotWhoseVersionIsForgottenGoesOnAtANewerOne(t *testing.T) {
	server := script(t, 300)
	server.list = func(q url.Values) (int, string) {
		if q.Get("resourceVersion") == "100" {
			return http.StatusGone, expired()
		}
		return http.StatusOK, podList(300, "", "a 10", "b 200")
	}
	listed := make(chan struct{})
	server.prepare = func(s *Stream) { s.Observer.Listed = func(change.Stream, int, int64) { close(listed) } }
	server.watch = func(_ url.Values, w *watchWriter) {
		w.flush()
		<-listed
		w.frames("ADDED b 200", "DELETED c 250")
		w.hold()
	}
	r := newRecorder("a 10", "c 20")
	s := server.start(r, at(100))
	s.Request(change.Owed{Sink: "lake", Reason: change.Lost})
	want(t, "records", r.wait(t, "snapshot.end 100 lost to lake"),
		"gap 100 lost to lake", "snapshot.begin 100 lost to lake", "added b 200", "deleted c 250", "sync a 10 to lake", "snapshot.end 100 lost to lake")
}

func TestI4UnsortedListIsComparedAllTheSame(t *testing.T) {
	server := script(t, 100)
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(100, "", "b 20", "a 10") }
	r := newRecorder("a 10", "c 30")
	saved := at(90)
	saved.Epoch = "epoch-0"
	server.start(r, saved)
	r.wait(t, "snapshot.end 100 epoch")
	if len(r.objects) != 2 {
		t.Errorf("the sinks have %v, want a and b", r.objects)
	}
}

// TestI4AnUnsortedListOfTwoVersionsIsAsOldAsItsOldestPage: the server goes on at a newer version where it has forgotten
// the list's. What was made between the two may belong to a page of the older one.
func TestI4AnUnsortedListOfTwoVersionsIsAsOldAsItsOldestPage(t *testing.T) {
	server, half, told, listed := script(t, 300), make(chan struct{}), make(chan struct{}), make(chan struct{})
	turned := sync.OnceFunc(func() { close(half) })
	server.list = func(q url.Values) (int, string) {
		switch q.Get("continue") {
		case "":
			return http.StatusOK, podList(100, "second", "b 20", "a 10")
		case "second":
			turned()
			<-told
			return http.StatusGone, strings.Replace(expired(), `"metadata":{}`, `"metadata":{"continue":"newer"}`, 1)
		}
		return http.StatusOK, podList(300, "", "z 250")
	}
	server.watch = func(_ url.Values, w *watchWriter) {
		w.flush()
		<-half
		w.frames("ADDED aa 150")
		<-listed
		w.frames("DELETED c 200", "ADDED z 250", "BOOKMARK 310")
		w.hold()
	}
	server.prepare = func(s *Stream) {
		s.Observer.Listed = func(_ change.Stream, n int, _ int64) {
			if n == 1 { // on the last page
				close(listed)
			}
		}
	}
	r := newRecorder("a 10", "b 20", "c 30")
	server.start(r, at(100)).Request(change.Owed{Sink: "lake", Reason: change.Requested})
	r.wait(t, "added aa 150")
	close(told)
	lines := r.wait(t, "snapshot.end 100 requested to lake")
	if strings.Contains(lines, "unseen") || strings.Count(lines, "deleted") != 1 {
		t.Errorf("only c was deleted, as the watch says, and the records are\n%s", lines)
	}
}

func TestServerThatIsBusyIsAskedAgain(t *testing.T) {
	server := script(t, 200)
	watches := 0
	server.watch = func(_ url.Values, w *watchWriter) {
		if watches++; watches < 3 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.frames("MODIFIED a 150")
		w.hold()
	}
	r := newRecorder("a 10")
	server.start(r, at(100))
	want(t, "records", r.wait(t, "updated a 150"), "updated a 150")
}

func TestSelectionGoesToTheServer(t *testing.T) {
	selection := Selection{LabelSelector: "app=x", FieldSelector: "metadata.name=a"}
	if got, want := selection.String(), "labels=app=x&fields=metadata.name=a"; got != want {
		t.Errorf("selection is %q, want %q", got, want)
	}
	if got := (Selection{}).String(); got != "" {
		t.Errorf("no selection is %q", got)
	}
}

func TestI4SnapshotThatIsAskedForWhileTheSameOneRunsRunsAgain(t *testing.T) {
	server := script(t, 100)
	var s *Stream
	ready, asked := make(chan struct{}), false
	server.list = func(url.Values) (int, string) {
		<-ready
		if !asked {
			asked = true
			for range 2 { // the log is lost once more, after the first object was written
				s.Request(change.Owed{Sink: "lake", Reason: change.Lost, Generation: 1})
			}
		}
		return http.StatusOK, podList(100, "", "a 10")
	}
	r := newRecorder("a 10")
	s = server.start(r, at(100))
	s.Request(change.Owed{Sink: "lake", Reason: change.Lost})
	close(ready)
	once := []string{"gap 100 lost to lake", "snapshot.begin 100 lost to lake", "sync a 10 to lake", "snapshot.end 100 lost to lake"}
	r.await(t, 2*len(once))
	want(t, "records", r.wait(t, once[3]), append(once, once...)...)
}
