package source

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/change"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func pods() change.Stream {
	return change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}
}

// recorder is a Line and an Inventory: what is pushed counts as delivered and saved at once.
type recorder struct {
	mu       sync.Mutex
	changed  *sync.Cond
	lines    []string
	position change.Position
	objects  map[string]change.Entry
	ghosts   []change.Ghost
	drift    []string
	failures []string
	epochs   string            // of the records, each once
	room     int               // so many records are taken, if it is not 0; the rest is refused
	after    map[string]string // by sink: how far the snapshots that it is owed came
}

func newRecorder(entries ...string) *recorder {
	r := &recorder{objects: map[string]change.Entry{}, after: map[string]string{}}
	r.changed = sync.NewCond(&r.mu)
	for _, text := range entries { // "name version"
		name, version, _ := strings.Cut(text, " ")
		key := change.Key{Namespace: "n", Name: name}
		r.objects[key.String()] = change.Entry{Key: key, UID: "uid-" + name, ResourceVersion: version}
	}
	return r
}

// Push notes the record as "op name version", with what is special about it behind.
func (r *recorder) Push(ctx context.Context, rec *change.Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.room > 0 {
		if r.room--; r.room == 0 {
			r.room = -1
		}
	}
	if r.room < 0 {
		r.changed.Broadcast()
		return errors.New("the process dies here")
	}
	line := strings.Join(strings.Fields(fmt.Sprintf("%s %s %s", rec.Op, rec.Key.Name, rec.ResourceVersion)), " ")
	if rec.Snapshot != nil && !rec.Op.OfObject() {
		line += " " + string(rec.Snapshot.Reason)
	}
	if rec.FinalStateUnknown {
		line += " unseen"
	}
	if rec.Sink != "" {
		line += " to " + rec.Sink
	}
	r.lines = append(r.lines, line)
	if !strings.HasSuffix(r.epochs, rec.Epoch) {
		r.epochs = strings.TrimSpace(r.epochs + " " + rec.Epoch)
	}
	r.apply(rec)
	r.changed.Broadcast()
	return nil
}

func (r *recorder) apply(rec *change.Record) {
	if rec.Position != (change.Position{}) {
		r.position = rec.Position
	}
	switch {
	case rec.Op == change.Sync && rec.Sink != "" && rec.Snapshot.Ordered:
		r.after[rec.Sink] = rec.Key.String()
	case !rec.Op.OfObject() || rec.Sink != "":
	case rec.Op == change.Deleted:
		delete(r.objects, rec.Key.String())
	default:
		r.objects[rec.Key.String()] = change.Entry{Key: rec.Key, UID: rec.UID, ResourceVersion: rec.ResourceVersion}
	}
}

func (r *recorder) Ghosts(change.Stream) []change.Ghost { return r.ghosts }

func (r *recorder) Drain(ctx context.Context, _ change.Stream) error { return ctx.Err() }

func (r *recorder) Lookup(_ string, key change.Key) (change.Entry, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry, found := r.objects[key.String()]
	return entry, found, nil
}

func (r *recorder) Scan(string) iter.Seq2[change.Entry, error] {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sorted []change.Entry
	for _, entry := range r.objects {
		sorted = append(sorted, entry)
	}
	slices.SortFunc(sorted, func(a, b change.Entry) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	return func(yield func(change.Entry, error) bool) {
		for _, entry := range sorted {
			if !yield(entry, nil) {
				return
			}
		}
	}
}

// corrected notes drift as "op name had -> has".
func (r *recorder) corrected(_ change.Stream, c change.Correction) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drift = append(r.drift, fmt.Sprintf("%s %s %s -> %s", c.Op, c.Key.Name, c.HadVersion, c.Version))
}

// wait returns the lines once the last of them is as wanted.
func (r *recorder) wait(t *testing.T, last string) string {
	t.Helper()
	return r.until(t, last, func() bool { return len(r.lines) > 0 && r.lines[len(r.lines)-1] == last })
}

// await returns when there are so many lines.
func (r *recorder) await(t *testing.T, n int) {
	t.Helper()
	r.until(t, fmt.Sprint(n, " lines"), func() bool { return len(r.lines) >= n })
}

func (r *recorder) until(t *testing.T, what string, reached func() bool) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	stop := context.AfterFunc(ctx, r.changed.Broadcast)
	defer stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !reached() {
		if ctx.Err() != nil {
			t.Fatalf("%s never came; there are\n%s", what, strings.Join(r.lines, "\n"))
		}
		r.changed.Wait()
	}
	return strings.Join(r.lines, "\n")
}

// apiServer answers as a script says. Lists and watches are asked one at a time.
type apiServer struct {
	t *testing.T
	// version is what a list of one object answers, where the server stands.
	version func() int
	// uid is that of namespace kube-system, "" for that of the tests.
	uid func() string
	// deny answers a request instead, where its status is not 0.
	deny func() (status int, body string)
	// list answers a list of more than one.
	list func(q url.Values) (status int, body string)
	// watch writes frames; the watch ends when it returns.
	watch func(q url.Values, w *watchWriter)

	mu       sync.Mutex
	requests []string
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.URL.Path == "/api/v1/namespaces/kube-system" {
		uid := "epoch-1"
		if a.uid != nil {
			uid = a.uid()
		}
		fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"%s"}}`, uid)
		return
	}
	q := request.URL.Query()
	if a.deny != nil {
		if status, body := a.deny(); status != 0 {
			a.note("denied")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
			return
		}
	}
	if q.Get("watch") == "true" {
		a.note("watch " + q.Get("resourceVersion"))
		a.watch(q, &watchWriter{w, request.Context()})
		return
	}
	if q.Get("limit") == "1" {
		fmt.Fprint(w, podList(a.version(), ""))
		return
	}
	a.note(strings.TrimSpace("list " + q.Get("resourceVersion") + " " + q.Get("continue")))
	status, body := a.list(q)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}

func (a *apiServer) note(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, text)
}

func (a *apiServer) asked() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.requests, ", ")
}

// watchWriter is the answer to a watch.
type watchWriter struct {
	http.ResponseWriter
	ctx context.Context
}

// frames sends the frames, each "TYPE name version", and returns when they are out.
func (w *watchWriter) frames(frames ...string) {
	for _, f := range frames {
		fmt.Fprintf(w, "%s\n", frameOf(f))
	}
	w.flush()
}

func (w *watchWriter) flush() { w.ResponseWriter.(http.Flusher).Flush() }

// hold keeps the watch open until the client ends it.
func (w *watchWriter) hold() { w.flush(); <-w.ctx.Done() }

// cut breaks the connection.
func (w *watchWriter) cut() { w.flush(); panic(http.ErrAbortHandler) }

func frameOf(text string) string {
	kind, rest, _ := strings.Cut(text, " ")
	name, version, _ := strings.Cut(rest, " ")
	switch kind {
	case "BOOKMARK":
		return fmt.Sprintf(`{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%s"},"spec":{"containers":null},"status":{}}}`, name)
	case "GONE":
		return `{"type":"ERROR","object":` + expired() + `}`
	}
	return fmt.Sprintf(`{"type":"%s","object":%s}`, kind, podJSON(name, version))
}

func podJSON(name, version string) string {
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"%s","namespace":"n","uid":"uid-%s","resourceVersion":"%s"}}`, name, name, version)
}

// podList is a page; its pods are "name version".
func podList(version int, token string, pods ...string) string {
	items := make([]string, len(pods))
	for i, pod := range pods {
		name, rv, _ := strings.Cut(pod, " ")
		items[i] = strings.Replace(podJSON(name, rv), `"kind":"Pod","apiVersion":"v1",`, "", 1)
	}
	return fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d","continue":"%s"},"items":[%s]}`,
		version, token, strings.Join(items, ","))
}

func expired() string {
	return `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 1 (2737)","reason":"Expired","code":410}`
}

// start runs a stream against the scripted server until the test ends.
func (a *apiServer) start(r *recorder, saved change.Position) *Stream {
	a.t.Helper()
	server := httptest.NewServer(a)
	client, err := NewClient(&rest.Config{Host: server.URL}, 1)
	if err != nil {
		a.t.Fatal(err)
	}
	observer := NopObserver()
	observer.Corrected = r.corrected
	observer.Failed = func(_ change.Stream, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.failures = append(r.failures, err.Error())
	}
	s := NewStream(Config{Client: client, Stream: pods(), Inventory: r, Saved: saved, ClusterUID: "epoch-1", Observer: observer})
	ctx, cancel := context.WithCancel(context.WithoutCancel(a.t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Run(ctx, r); err != nil {
			a.t.Error(err)
		}
	}()
	a.t.Cleanup(func() {
		cancel()
		<-done
		client.rest.Client.CloseIdleConnections()
		server.Close()
	})
	return s
}

// at is a complete position of the test's epoch.
func at(version int) change.Position {
	return change.Position{ResourceVersion: strconv.Itoa(version), Complete: true, Epoch: "epoch-1"}
}
