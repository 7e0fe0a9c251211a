package source

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/change"
)

// sessionRig is a session against a scripted server that has pods in two versions.
type sessionRig struct {
	t       *testing.T
	r       *recorder
	session *Session
	owed    []change.Owed // by the state
	cancel  context.CancelFunc
	ended   chan struct{}
	over    bool
	err     error

	mu      sync.Mutex // guards the following
	watches []string   // paths
}

// startSession runs a session. What it goes on from is what the recorder has saved.
func startSession(t *testing.T, a *apiServer, r *recorder, owed ...change.Owed) *sessionRig {
	t.Helper()
	a.told = r
	s := &sessionRig{t: t, r: r, owed: owed, ended: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Query().Get("watch") == "true" {
			s.mu.Lock()
			s.watches = append(s.watches, request.URL.Path+" "+request.URL.Query().Get("resourceVersion"))
			s.mu.Unlock()
		}
		a.ServeHTTP(w, request)
	}))
	client, err := NewClient(&rest.Config{Host: server.URL}, 1)
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Client: client, Stream: pods(), Inventory: r, ClusterUID: "epoch-1", Meet: r.meet, Observer: NopObserver()}
	s.session = NewSession(config, func() (Saved, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.unsaved {
			t.Error("the saved state is read while records are under way")
		}
		return Saved{Position: r.position, Owed: s.owed}, nil
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	s.cancel = cancel
	go func() {
		defer close(s.ended)
		s.over, s.err = s.session.Run(ctx, r)
	}()
	t.Cleanup(func() {
		cancel()
		<-s.ended
		client.rest.Client.CloseIdleConnections()
		server.Close()
	})
	return s
}

// watched are the watches that were opened.
func (s *sessionRig) watched() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.watches, ", ")
}

// quiet is a server with two pods, which tells of a third one and then holds.
func quiet(t *testing.T) *apiServer {
	var now atomic.Int64
	now.Store(10)
	return &apiServer{
		t: t, version: func() int { return int(now.Load()) },
		list: func(url.Values) (int, string) { return http.StatusOK, podList(10, "", "a 1", "b 2") },
		watch: func(q url.Values, w *watchWriter) {
			switch q.Get("resourceVersion") {
			case "10":
				now.Store(12)
				if w.told.tells("snapshot.begin 10 initial") {
					w.behind("snapshot.end 10 initial")
				}
				w.frames("ADDED c 11", "BOOKMARK 12")
			case "12":
				w.frames("ADDED d 13")
			}
			w.hold()
		},
	}
}

// TestI4AStreamThatBeginsInAnotherClusterMeetsIt before it tells anything: else what it tells is nobody's when yet
// another cluster is there. That the one of the start is there need not be noted.
func TestI4AStreamThatBeginsInAnotherClusterMeetsIt(t *testing.T) {
	for uid, want := range map[string]string{"epoch-1": "", "epoch-2": "epoch-2 behind 0 "} {
		for reason, r := range map[string]*recorder{"initial": newRecorder(), "stale": newRecorder("a 1")} {
			server := quiet(t)
			server.uid = func() string { return uid }
			startSession(t, server, r).session.Serve("v1")
			r.until(t, "the begin", func() bool { return slices.Contains(r.lines, "snapshot.begin 10 "+reason) })
			r.mu.Lock()
			if r.met != want || r.epochs != uid {
				t.Errorf("%s: what is told is of %q, and the clusters that were noted are %q, want %q", reason, r.epochs, r.met, want)
			}
			r.mu.Unlock()
		}
	}
}

// TestI3ASessionGoesOnInAnotherVersion where it was: it lists nothing, and opens its watch after what is saved.
func TestI3ASessionGoesOnInAnotherVersion(t *testing.T) {
	r := newRecorder()
	s := startSession(t, quiet(t), r)
	s.session.Serve("v1")
	r.wait(t, "bookmark 12")
	s.session.Serve("v2")
	got := r.wait(t, "added d 13")
	want := "snapshot.begin 10 initial\nreplaced a 1\nreplaced b 2\nsnapshot.end 10 initial\nadded c 11\nbookmark 12\nadded d 13"
	if got != want {
		t.Errorf("told\n%s\nwant\n%s", got, want)
	}
	if got, want := s.watched(), "/api/v1/pods 10, /api/v2/pods 12"; got != want {
		t.Errorf("watched %s, want %s", got, want)
	}
	s.session.Serve("v2") // nothing new
	s.cancel()
	<-s.ended
	if s.over || s.err != nil {
		t.Errorf("a session that was stopped: over %t, %v", s.over, s.err)
	}
}

// TestI4AResourceWhoseDefinitionIsDeleted: all that the sinks have of it is deleted, after a gap up to the version at
// which that is certain, and then the session is over.
func TestI4AResourceWhoseDefinitionIsDeleted(t *testing.T) {
	r := newRecorder()
	s := startSession(t, quiet(t), r)
	s.session.Serve("v1")
	r.wait(t, "bookmark 12")
	r.mu.Lock()
	r.lines = nil
	r.sinkOnly = []change.SinkOnly{{Sink: "s", Entry: change.Entry{Key: change.Key{Namespace: "n", Name: "z"}, UID: "uid-z", ResourceVersion: "9"}}}
	r.mu.Unlock()
	s.session.End("20")
	<-s.ended
	want := "gap 20 removed\nsnapshot.begin 20 removed\ndeleted a 1 unseen\ndeleted b 2 unseen\ndeleted c 11 unseen\ndeleted z 9 unseen to s\nsnapshot.end 20 removed"
	if got := strings.Join(r.lines, "\n"); !s.over || s.err != nil || got != want {
		t.Errorf("over %t, %v, told\n%s\nwant\n%s", s.over, s.err, got, want)
	}
}

// TestADefinitionIsDeletedOfWhichTheWatchToldAll: there is no gap, and one record says that the stream is over.
func TestADefinitionIsDeletedOfWhichTheWatchToldAll(t *testing.T) {
	r := newRecorder()
	r.position = at(12)
	s := startSession(t, quiet(t), r)
	s.session.End("20")
	<-s.ended
	if got := strings.Join(r.lines, "\n"); !s.over || s.err != nil || got != "snapshot.end 20 removed" {
		t.Errorf("over %t, %v, told\n%s", s.over, s.err, got)
	}
}

// TestI4ARetirementThatIsInterrupted is not over, and tells of the rest the next time.
func TestI4ARetirementThatIsInterrupted(t *testing.T) {
	r := newRecorder("a 1", "b 2", "c 3")
	r.position, r.room = at(5), 4 // gap, begin, one delete
	s := startSession(t, quiet(t), r)
	s.session.End("")
	<-s.ended
	if s.over || s.err == nil {
		t.Fatalf("over %t, %v, told %q", s.over, s.err, r.lines)
	}
	r.lines, r.room, r.unsaved = nil, 0, false
	s = startSession(t, quiet(t), r)
	s.session.End("")
	<-s.ended
	want := "gap 5 removed, snapshot.begin 5 removed, deleted b 2 unseen, deleted c 3 unseen, snapshot.end 5 removed"
	if got := strings.Join(r.lines, ", "); !s.over || got != want {
		t.Errorf("over %t, told %s, want %s", s.over, got, want)
	}
}

// TestI8ARetirementIsOfTheHistoryThatWasDelivered, also in a life that another cluster's server is found in: what was
// told before the last one ended has the same ids.
func TestI8ARetirementIsOfTheHistoryThatWasDelivered(t *testing.T) {
	for _, delivered := range []string{"epoch-0", "epoch-1", change.Interrupted} {
		r := newRecorder("a 1")
		r.position = at(5)
		r.position.Epoch = delivered
		s := startSession(t, quiet(t), r)
		s.session.End("")
		<-s.ended
		want := delivered
		if delivered == change.Interrupted {
			want = "epoch-1" // of the server
		}
		if r.epochs != want || !s.over {
			t.Errorf("position of %s: over %t, the records are of %q, want %q", delivered, s.over, r.epochs, want)
		}
	}
}

// A stream of which nobody knows anything is over without a word, and one that nobody serves asks for nothing.
func TestASessionThatWaits(t *testing.T) {
	r := newRecorder()
	s := startSession(t, quiet(t), r)
	select {
	case <-s.ended:
		t.Fatal("it did not wait")
	default:
	}
	s.session.End("")
	<-s.ended
	if got := s.watched(); !s.over || s.err != nil || got != "" || len(r.lines) > 0 {
		t.Errorf("over %t, %v, watched %q, told %q", s.over, s.err, got, r.lines)
	}
}

// TestI4SnapshotsThatAreAskedForWhileNothingIsRead are not forgotten.
func TestI4SnapshotsThatAreAskedForWhileNothingIsRead(t *testing.T) {
	r := newRecorder("a 1", "b 2")
	r.position = at(10)
	server := quiet(t)
	watch := server.watch
	server.watch = func(q url.Values, w *watchWriter) { // the list is of version 10
		w.behind("snapshot.begin 10 requested to s")
		watch(q, w)
	}
	s := startSession(t, server, r)
	s.session.Request(change.Owed{Sink: "s", Reason: change.Requested})
	s.session.Serve("v1")
	told := func(line string) bool { return slices.Contains(r.lines, line) }
	r.until(t, "the end of both", func() bool { return told("bookmark 12") && told("snapshot.end 10 requested to s") })
	for _, line := range []string{"snapshot.begin 10 requested to s", "sync a 1 to s", "sync b 2 to s", "added c 11"} {
		if !told(line) {
			t.Errorf("told is\n%s\nwithout %s", strings.Join(r.lines, "\n"), line)
		}
	}
}

// TestI5ASessionWhoseStateCannotBeRead ends with why.
func TestI5ASessionWhoseStateCannotBeRead(t *testing.T) {
	broken := errors.New("the disk is gone")
	s := NewSession(Config{Stream: pods()}, func() (Saved, error) { return Saved{}, broken })
	s.Serve("v1")
	if over, err := s.Run(t.Context(), newRecorder()); over || !errors.Is(err, broken) {
		t.Errorf("over %t, %v", over, err)
	}
}

// gapsOfLake are what a sink is owed that is absent, or whose log has lost records.
func gapsOfLake() []change.Owed {
	return []change.Owed{{Sink: "lake", Reason: change.Absent, Generation: 3}, {Sink: "lake", Reason: change.Lost, Generation: 4}}
}

// TestI4ASinkIsGivenAGapOfItsOwnWhenThatIsAskedFor: before, nobody would hear what the snapshot of an absent sink says,
// and nobody knows what the log has lost of one that is not open.
func TestI4ASinkIsGivenAGapOfItsOwnWhenThatIsAskedFor(t *testing.T) {
	r := newRecorder()
	s := startSession(t, quiet(t), r, gapsOfLake()...)
	s.session.Serve("v1")
	if got := r.wait(t, "bookmark 12"); strings.Contains(got, "absent") || strings.Contains(got, "lost") {
		t.Errorf("told\n%s", got)
	}
	s.session.Serve("v2")
	if got := r.wait(t, "added d 13"); strings.Contains(got, "absent") || strings.Contains(got, "lost") {
		t.Errorf("told\n%s", got)
	}
}
