package pipeline

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/source"
)

// world is an API server that has pods and changes none, the state of an exporter, and the log of its sink. Lives of
// the exporter follow each other; each is a real stream, pipeline and store.
type world struct {
	t      *testing.T
	server *httptest.Server
	dir    string
	target *memory

	mu   sync.Mutex // guards the following
	pods []string   // names, sorted; each pod's version is its place from 1
}

const worldVersion = 1000

func newWorld(t *testing.T, pods int) *world {
	w := &world{t: t, dir: t.TempDir(), target: &memory{}}
	for i := range pods {
		w.pods = append(w.pods, fmt.Sprintf("p%04d", i))
	}
	w.server = httptest.NewServer(w)
	t.Cleanup(w.server.Close)
	return w
}

// ServeHTTP lists at most twenty pods a page, with the tokens of kube-apiserver, and holds watches open.
func (w *world) ServeHTTP(out http.ResponseWriter, request *http.Request) {
	q := request.URL.Query()
	switch {
	case strings.HasSuffix(request.URL.Path, "/namespaces/kube-system"):
		fmt.Fprintf(out, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"%s"}}`, clusterUID)
	case q.Get("watch") == "true":
		out.(http.Flusher).Flush()
		<-request.Context().Done()
	default:
		w.list(out, q)
	}
}

func (w *world) list(out io.Writer, q url.Values) {
	w.mu.Lock()
	defer w.mu.Unlock()
	token := func(until int) string {
		return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"v":"meta.k8s.io/v1","rv":%d,"start":"/n/%s\u0000"}`, worldVersion, w.pods[until-1]))
	}
	limit, _ := strconv.Atoi(q.Get("limit"))
	from := 0
	for q.Get("continue") != "" && (from == 0 || token(from) != q.Get("continue")) {
		from++
	}
	until, next := min(from+min(limit, 20), len(w.pods)), ""
	if until < len(w.pods) {
		next = token(until)
	}
	var items []string
	for i, name := range w.pods[from:until] {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":"%s","namespace":"n","uid":"uid-%s","resourceVersion":"%d"}}`, name, name, from+i+1))
	}
	fmt.Fprintf(out, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d","continue":"%s"},"items":[%s]}`,
		worldVersion, next, strings.Join(items, ","))
}

// life runs the exporter until use returns, or it dies of its sink's fault. use is given what is saved, until the
// life's end.
func (w *world) life(configure func(*Config), use func(saved <-chan *change.Record)) error {
	w.t.Helper()
	store, err := checkpoint.Open(w.t.Context(), w.dir, checkpoint.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			w.t.Error(err)
		}
	}()
	client, err := source.NewClient(&rest.Config{Host: w.server.URL, Transport: &http.Transport{DisableKeepAlives: true}}, 1)
	if err != nil {
		w.t.Fatal(err)
	}
	saved, _, err := store.Position("pods")
	if err != nil {
		w.t.Fatal(err)
	}
	stream := source.NewStream(source.Config{
		Client: client, Stream: pods(), Inventory: store, Saved: saved, ClusterUID: clusterUID, Observer: source.NopObserver(),
	})
	out := sinkOf("s", w.target)
	out.Queue = fifo.Limit{Bytes: 1 << 20, Records: 10}
	config := Config{
		ClusterUID: clusterUID, Store: store, Sinks: []delivery.Sink{out}, StopTimeout: 10 * time.Second, Observer: NopObserver(),
		Sources: []Source{{
			Stream:  pods(),
			Run:     func(ctx context.Context, line *Inlet) error { return stream.Run(ctx, line) },
			Request: stream.Request,
		}},
	}
	records := make(chan *change.Record, 10_000)
	config.Observer.Committed = func(batch []*change.Record, _ map[string]sink.Mark, _ time.Duration) {
		for _, rec := range batch {
			records <- rec
		}
	}
	configure(&config)
	ctx, stop := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() {
		defer close(records)
		ended <- Run(ctx, config)
	}()
	use(records)
	stop()
	for range records {
		continue // until the run is over
	}
	return <-ended
}

// until waits for a saved record of the operation and the reason; false is that the life ended before.
func until(saved <-chan *change.Record, op change.Op, reason change.Reason) bool {
	for rec := range saved {
		if rec.Op == op && rec.Snapshot != nil && rec.Snapshot.Reason == reason {
			return true
		}
	}
	return false
}

// diesAfter makes the sink refuse everything after so many batches.
func (w *world) diesAfter(batches int) {
	w.target.fault = func(context.Context, []sink.Message) error {
		if batches--; batches < 0 {
			return &sink.PermanentError{Err: errors.New("the process dies here")}
		}
		return nil
	}
}

// Each life delivers a few batches of at most ten records and dies. The initial snapshot ends, and then one that was
// requested: its pending snapshot survives each crash, and goes on where it was.
func TestI4CrashLoopEnds(t *testing.T) {
	const pods, batches = 200, 5
	w := newWorld(t, pods)
	w.loop(t, batches, 2*pods/batches, change.Initial)
	w.expectOnce(t, "replaced", pods, pods)
	answer, requests := make(chan error, 1), make(chan Request, 1)
	requests <- Request{Reason: change.Requested, Answer: answer}
	w.diesAfter(0)
	if err := w.life(func(c *Config) { c.Requests = requests }, func(saved <-chan *change.Record) {
		if err := <-answer; err != nil {
			t.Error(err)
		}
		for range saved {
			continue
		}
	}); err == nil {
		t.Fatal("the life in which the snapshot was asked for did not die")
	}
	w.loop(t, batches, 2*pods/batches, change.Requested)
	w.expectOnce(t, "sync", pods, pods+batches*10*2)
	if err := w.life(func(*Config) {}, func(<-chan *change.Record) {}); err != nil {
		t.Error(err)
	}
}

// loop lives until the snapshot of the reason is delivered and saved.
func (w *world) loop(t *testing.T, batches, most int, reason change.Reason) {
	t.Helper()
	lives := 0
	for done := false; !done; lives++ {
		if lives > most {
			t.Fatalf("the %s snapshot is not complete after %d lives", reason, lives)
		}
		w.diesAfter(batches)
		err := w.life(func(*Config) {}, func(saved <-chan *change.Record) { done = until(saved, change.SnapshotEnd, reason) })
		if !done && err == nil {
			t.Fatal("a life ended well without its snapshot")
		}
	}
	if lives < 3 {
		t.Fatalf("the %s snapshot took %d lives: nothing was interrupted", reason, lives)
	}
}

// expectOnce wants each pod in the log, and so many records at most: where the death fell between writing and saving, a
// sync comes again.
func (w *world) expectOnce(t *testing.T, op string, pods, most int) {
	t.Helper()
	log := w.target.short()
	for i, name := range w.pods {
		if want := fmt.Sprintf("%s/%d/%s", name, i+1, op); !strings.Contains(log, want) {
			t.Errorf("%s is not in the log", want)
		}
	}
	if n := strings.Count(log, "/"+op); n < pods || n > most {
		t.Errorf("the log holds %d records of %s, want from %d to %d", n, op, pods, most)
	}
}

// The periods of a sink bring it all objects, and what no watch told of.
func TestI4ResyncFindsWhatNoWatchTold(t *testing.T) {
	w := newWorld(t, 30)
	err := w.life(func(c *Config) { c.Sinks[0].Resync = 300 * time.Millisecond }, func(saved <-chan *change.Record) {
		if !until(saved, change.SnapshotEnd, change.Resync) {
			t.Error("no resync came")
			return
		}
		w.mu.Lock()
		w.pods = w.pods[:29] // and no watch tells
		w.mu.Unlock()
		if !until(saved, change.Deleted, change.Resync) || !until(saved, change.SnapshotEnd, change.Resync) {
			t.Error("the delete was not found")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	log := w.target.short()
	if strings.Count(log, "p0029/30/deleted") != 1 || strings.Count(log, "/replaced") != 30 {
		t.Errorf("log is %s, want one delete and each pod once", log)
	}
}
