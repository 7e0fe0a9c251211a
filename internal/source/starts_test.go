package source

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestAStartAsksLittle: once which cluster it is, and of each stream once where the server stands, beside the list of a
// new stream and the watch.
func TestAStartAsksLittle(t *testing.T) {
	const streams = 40
	for name, saved := range map[string]change.Position{"new": {}, "known": at(10)} {
		t.Run(name, func(t *testing.T) {
			asked := askedByStart(t, streams, saved)
			want := map[string]int{"cluster": 1, "version": streams, "watch": streams}
			if saved.ResourceVersion == "" {
				want["list"] = streams
			}
			if fmt.Sprint(asked) != fmt.Sprint(want) {
				t.Errorf("the start of %d streams asked %v, want %v", streams, asked, want)
			}
		})
	}
}

// TestAServerThatIsNotReadyIsNotAskedMore: what it said before is still true.
func TestAServerThatIsNotReadyIsNotAskedMore(t *testing.T) {
	versions, denied := 0, 0
	watching := make(chan struct{})
	a := &apiServer{
		t: t, version: func() int { versions++; return 10 },
		deny: func() (int, string) {
			if denied++; denied < 2 || denied > 4 { // the first question is where it stands
				return 0, ""
			}
			return http.StatusTooManyRequests, `{"kind":"Status","status":"Failure","message":"storage is (re)initializing","reason":"TooManyRequests","code":429}`
		},
		watch:   func(_ url.Values, w *watchWriter) { close(watching); w.hold() },
		prepare: func(s *Stream) { s.Client.maxAge = time.Hour },
	}
	a.start(newRecorder(), at(10))
	<-watching
	if versions != 1 || denied != 5 {
		t.Errorf("it was asked %d times where it stands, in %d requests, want once, in 5", versions, denied)
	}
}

// TestI4AFirstStartBeginsWhereTheServerCanWatch: a server that builds its cache of a custom resource refuses watches
// from before it. A first start waits for it, and tells of no gap.
func TestI4AFirstStartBeginsWhereTheServerCanWatch(t *testing.T) {
	const oldest = 120
	busy := 2
	a := script(t, 100)
	a.cache = func() (int, string) {
		if busy--; busy >= 0 {
			return http.StatusTooManyRequests, `{"kind":"Status","status":"Failure","message":"storage is (re)initializing","reason":"TooManyRequests","code":429}`
		}
		return http.StatusOK, podList(oldest, "")
	}
	a.list = func(url.Values) (int, string) { return http.StatusOK, podList(oldest, "", "a 10") }
	a.watch = func(q url.Values, w *watchWriter) {
		if from, err := strconv.Atoi(q.Get("resourceVersion")); err != nil || from < oldest {
			w.frames("GONE " + strconv.Itoa(oldest))
			return
		}
		w.hold()
	}
	r := newRecorder()
	a.start(r, change.Position{})
	want(t, "records", r.wait(t, "snapshot.end 120 initial"), "snapshot.begin 120 initial", "replaced a 10", "snapshot.end 120 initial")
	want(t, "failures", strings.Join(r.failures, "\n"))
}

// TestAServerWithoutFieldSelectorsIsAskedWithoutOne: an aggregated API server need not have them.
func TestAServerWithoutFieldSelectorsIsAskedWithoutOne(t *testing.T) {
	a := script(t, 100)
	a.cache = func() (int, string) {
		return http.StatusBadRequest, `{"kind":"Status","status":"Failure","message":"field label not supported: metadata.name","reason":"BadRequest","code":400}`
	}
	a.list = func(url.Values) (int, string) { return http.StatusOK, podList(100, "", "a 10") }
	r := newRecorder()
	a.start(r, change.Position{})
	want(t, "records", r.wait(t, "snapshot.end 100 initial"), "snapshot.begin 100 initial", "replaced a 10", "snapshot.end 100 initial")
}

// askedByStart starts so many streams at once, and returns what they asked until all are watching.
func askedByStart(t *testing.T, streams int, saved change.Position) map[string]int {
	t.Helper()
	var mu sync.Mutex
	asked := map[string]int{}
	watching, listed := make(chan struct{}, streams), make(chan struct{}, streams)
	a := &apiServer{
		t: t, version: func() int { return 10 },
		list: func(url.Values) (int, string) {
			listed <- struct{}{}
			return http.StatusOK, podList(10, "")
		},
		watch: func(_ url.Values, w *watchWriter) {
			watching <- struct{}{}
			w.hold()
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[kindOf(r)]++
		mu.Unlock()
		a.ServeHTTP(w, r)
	}))
	defer server.Close()
	client, err := NewClient(&rest.Config{Host: server.URL}, streams)
	if err != nil {
		t.Fatal(err)
	}
	client.maxAge = time.Hour // slow machines answer late
	ctx, stop := context.WithCancel(t.Context())
	gate := NewGate(4)
	var running sync.WaitGroup
	for i := range streams {
		stream := pods()
		stream.Resource.Group, stream.Resource.Name = "example.com", fmt.Sprint("gears", i)
		running.Go(func() {
			config := Config{Client: client, Stream: stream, Inventory: newRecorder(), Saved: saved, ClusterUID: "epoch-1", Observer: NopObserver(), Gate: gate}
			if err := NewStream(config).Run(ctx, newRecorder()); err != nil {
				t.Error(err)
			}
		})
	}
	for range streams {
		<-watching
		if saved.ResourceVersion == "" {
			<-listed
		}
	}
	stop()
	running.Wait()
	client.rest.Client.CloseIdleConnections()
	return asked
}

func kindOf(r *http.Request) string {
	q := r.URL.Query()
	switch {
	case strings.HasSuffix(r.URL.Path, "/namespaces/kube-system"):
		return "cluster"
	case q.Get("watch") == "true":
		return "watch"
	case q.Get("limit") == "1":
		return "version"
	}
	return "list"
}
