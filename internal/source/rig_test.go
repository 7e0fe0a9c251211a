package source

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/sink"
)

func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil // they sleep after each error, by a clock that is not the bubble's
	goleak.VerifyTestMain(m)
}

// rig is a stream between an API server and sinks, whose logs are in memory, in the time of a synctest bubble.
type rig struct {
	*testing.T
	server *server
	store  *checkpoint.Store
	logs   map[string]*sinkLog
	spool  int64
	queue  fifo.Limit
	merges bool          // the sinks' queues coalesce
	disk   time.Duration // that a commit takes
	config func(*Config) // nil leaves it as it is
	rest   *rest.Config  // nil is the server, without connections
	// streams is for how many of them the client is.
	streams  int
	answered func() // lets lists go on that wait; nil where none do

	// of the life
	informer *SharedInformer
	images   *listener.Images
	intakes  map[string]*listener.Intake
	stop     func()

	mu       sync.Mutex // guards the following
	failures []string
	drift    []string
	ended    []change.Counts
	listed   []int // objects, by page
}

// play plays the test with a server that stands at the version.
func play(t *testing.T, version int, test func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 40})
		options := checkpoint.OnFS(disk)
		options.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
		store, err := checkpoint.Open(t.Context(), "state", options)
		r := &rig{
			T: t, server: newServer(version), store: store, logs: map[string]*sinkLog{}, stop: func() {},
			queue: fifo.Limit{Bytes: 1 << 20, Records: 1 << 10},
		}
		r.must(err)
		_, err = store.Met(r.server.uid)
		r.must(err)
		defer func() {
			r.stop()
			r.must(store.Close())
		}()
		test(r)
	})
}

func (r *rig) must(err error) {
	r.Helper()
	must(r, err)
}

// has makes the sink one that was told of the objects, each "name version", and stands at the position.
func (r *rig) has(name string, position int, objects ...string) {
	r.Helper()
	state, err := r.store.LoadSink(name)
	r.must(err)
	at := func(version int) checkpoint.Point {
		return checkpoint.Point{History: 1, Version: strconv.Itoa(version)}
	}
	begin := checkpoint.Item{
		Kind: checkpoint.Begin, Resource: "pods", Scope: checkpoint.Others, At: at(position), Selection: new(string),
		Comparison: checkpoint.Comparison{ID: "1.1"},
	}
	end := begin
	end.Kind = checkpoint.End
	all := []checkpoint.Item{begin}
	for _, text := range objects {
		object, version, uid := parts(text)
		all = append(all, checkpoint.Item{
			Kind: checkpoint.Told, Resource: "pods", Scope: checkpoint.Others, At: at(version),
			Key: keyOf(object), UID: cmp.Or(uid, "uid-"+object),
		})
	}
	for _, item := range append(all, end) {
		r.must(state.Acked(&item))
	}
	state.Mark = "0"
	r.must(r.store.SaveSinks([]*checkpoint.SinkState{state}, checkpoint.Spools{}, nil))
}

// keyOf is that of the object "name", which is in namespace n, or "namespace/name".
func keyOf(object string) change.Key {
	if !strings.Contains(object, "/") {
		object = "n/" + object
	}
	return change.ParseKey(object)
}

// exist makes the server have the objects, each "name version", and the sink was told of them at the position.
func (r *rig) exist(name string, position int, objects ...string) {
	r.Helper()
	r.server.do(objects...)
	r.has(name, position, objects...)
}

// start begins a life with the sinks, and returns when nothing is left to do at this moment.
func (r *rig) start(sinks ...string) {
	r.Helper()
	if r.rest == nil {
		r.rest = &rest.Config{Host: "http://server", Transport: r.server}
	}
	client, err := NewClient(r.rest, max(r.streams, 1))
	r.must(err)
	config := Config{Client: client, Stream: pods(), Histories: r.store, ClusterUID: "epoch-1", Observer: r.observer()}
	r.images = listener.NewImages(r.store)
	if r.config != nil {
		r.config(&config)
	}
	r.informer = NewSharedInformer(config)
	r.informer.Serve("v1")
	ctx, cancel := context.WithCancel(context.Background())
	var listeners, source, commits sync.WaitGroup
	work := make(chan struct{}, 1)
	books := listener.NewBooks(r.store, listener.NopObserver(), r.images)
	common := listener.Config{
		ClusterUID: "epoch-1", Store: r.store, Streams: func() []*change.Stream { return []*change.Stream{&config.Stream} },
		Observer: listener.NopObserver(), Stops: listener.NewStops(len(sinks) + 1), Serve: r.informer.Join,
		Work: func(bool) {
			select {
			case work <- struct{}{}:
			default:
			}
		},
	}
	commits.Go(func() {
		for range work {
			time.Sleep(r.disk)
			_ = books.Save(context.Background())
		}
		_ = books.Save(context.Background())
	})
	r.intakes = map[string]*listener.Intake{}
	var all []*listener.Intake
	for at, name := range sinks {
		l, err := listener.New(at, &listener.Sink{
			Name: name, Target: r.log(name), Encoder: encoder{}, Queue: r.queue, Spool: r.spool, Coalesce: r.merges,
		}, &common, books)
		r.must(err)
		r.intakes[name], all = &l.Intake, append(all, &l.Intake)
		listeners.Go(func() { _ = l.Run(ctx, context.Background()) })
	}
	synctest.Wait() // the sinks are open
	source.Go(func() { r.informer.Run(ctx, all) })
	r.stop = func() {
		r.stop = func() {}
		for _, log := range r.logs {
			log.free()
		}
		cancel()
		source.Wait()
		for _, intake := range all {
			intake.Finish()
		}
		listeners.Wait()
		close(work)
		commits.Wait()
		client.rest.Client.CloseIdleConnections()
	}
	synctest.Wait()
}

// ask asks for a snapshot of the sink.
func (r *rig) ask(name string, reason change.Reason, limits change.Limits) {
	r.informer.Ask([]*listener.Intake{r.intakes[name]}, reason, limits)
	synctest.Wait()
}

// answers makes requests of the kind have the answers; nil is as usual.
func (r *rig) answers(kind string, answer func(q url.Values) *http.Response) {
	r.server.answer = func(asked string, q url.Values) *http.Response {
		if asked != kind {
			return nil
		}
		return answer(q)
	}
}

// holdLists makes lists have no answer until answered is called.
func (r *rig) holdLists() (answered func()) {
	late := make(chan struct{})
	r.answers("list", func(url.Values) *http.Response { <-late; return nil })
	return func() { close(late) }
}

// pass lets so much time pass.
func (r *rig) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// do is the server's, and returns when nothing is left to do at this moment.
func (r *rig) do(each ...string) {
	r.server.do(each...)
	synctest.Wait()
}

// want compares what the sink was told since it was asked last, each "op name version".
func (r *rig) want(name string, lines ...string) {
	r.Helper()
	synctest.Wait()
	compare(r.T, "records of "+name, r.log(name).take(), lines)
}

func compare(t *testing.T, what string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	same := 0
	for same < min(len(got), len(want)) && got[same] == want[same] {
		same++
	}
	show := func(lines []string) string {
		return strings.Join(lines[max(0, min(same-3, len(lines))):min(same+20, len(lines))], "\n\t")
	}
	t.Errorf("%s are, of %d from line %d on,\n\t%s\nwant\n\t%s", what, len(got), max(0, same-3), show(got), show(want))
}

// position is where the sink stands.
func (r *rig) position(name string) string {
	seat, _ := r.intakes[name].Seat()
	return seat.Known(&listener.Way{Resource: "pods", Scope: checkpoint.Others}).From.Version
}

func (r *rig) stands(name, position string) {
	r.Helper()
	if got := r.position(name); got != position {
		r.Errorf("%s stands at %s, want %s", name, got, position)
	}
}

// asked compares the requests for objects since they were asked for last.
func (r *rig) asked(want string) {
	r.Helper()
	if got := r.server.asked(); got != want {
		r.Errorf("requests are\n\t%s\nwant\n\t%s", got, want)
	}
}

// failed are what failed since it was asked last.
func (r *rig) failed() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := strings.Join(r.failures, "\n")
	r.failures = nil
	return text
}

func (r *rig) log(name string) *sinkLog {
	if r.logs[name] == nil {
		r.logs[name] = &sinkLog{}
	}
	return r.logs[name]
}

func (r *rig) observer() Observer {
	o := NopObserver()
	o.Failed = func(_ change.Stream, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.failures = append(r.failures, err.Error())
	}
	o.Corrected = func(_ change.Stream, c change.Correction) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.drift = append(r.drift, fmt.Sprintf("%s %s %s -> %s", c.Op, c.Key.Name, c.HadVersion, c.Version))
	}
	o.Compared = func(_ change.Stream, snapshot *change.Snapshot) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended = append(r.ended, snapshot.Counts)
	}
	o.Listed = func(_ change.Stream, n int, _ int64) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.listed = append(r.listed, n)
	}
	return o
}

// sinkLog is a sink whose log outlives its lives.
type sinkLog struct {
	mu    sync.Mutex // guards the following
	lines []string
	ids   []string
	shown int
	stuck chan struct{} // no write returns before it is closed; nil is none
}

// block makes the sink take nothing more.
func (s *sinkLog) block() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stuck = make(chan struct{})
}

// free takes that back.
func (s *sinkLog) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stuck != nil {
		close(s.stuck)
		s.stuck = nil
	}
}

// take are the lines since it was called last.
func (s *sinkLog) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.lines[s.shown:]
	s.shown = len(s.lines)
	return lines
}

// Open is sink.Sink's.
func (s *sinkLog) Open(_ context.Context, at sink.Opening) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := at.After()
	if at.Mark != "" {
		for _, id := range s.ids[min(number(string(at.Mark)), len(s.ids)):] {
			found(id)
		}
	}
	return nil
}

// Write is sink.Sink's.
func (s *sinkLog) Write(ctx context.Context, batch []sink.Message) (sink.Mark, error) {
	s.mu.Lock()
	stuck := s.stuck
	s.mu.Unlock()
	if stuck != nil && len(batch) > 0 {
		select {
		case <-stuck:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range batch {
		s.lines, s.ids = append(s.lines, string(batch[i].Value)), append(s.ids, batch[i].ID)
	}
	return sink.Mark(strconv.Itoa(len(s.ids))), nil
}

// Close is sink.Sink's.
func (s *sinkLog) Close(context.Context) error { return nil }

// encoder writes a record as "op name version", with what is special about it behind.
type encoder struct{}

// Encode is listener.Encoder's.
func (encoder) Encode(_ context.Context, dst []sink.Message, rec *change.Record) ([]sink.Message, error) {
	name := rec.Key.Name
	if rec.Key.Namespace != "" && rec.Key.Namespace != "n" {
		name = rec.Key.Namespace + "/" + name
	}
	line := strings.Join(strings.Fields(fmt.Sprintf("%s %s %s", rec.Op, name, rec.ResourceVersion)), " ")
	if rec.Snapshot != nil && !rec.Op.OfObject() {
		line += " " + string(rec.Snapshot.Reason)
	}
	if rec.FinalStateUnknown {
		line += " unseen"
	}
	if rec.Before != nil {
		line += " after " + versionOf(rec.Before)
	}
	if rec.Remarks != nil && rec.Remarks.Rejected != "" {
		line += " " + rec.Remarks.Rejected
	}
	if rec.Last {
		line += " last"
	}
	return append(dst, sink.Message{ID: rec.ID("epoch-1").String(), Op: rec.Op.String(), Value: []byte(line)}), nil
}

// Reset is listener.Encoder's.
func (encoder) Reset() {}

// must ends the test where there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
