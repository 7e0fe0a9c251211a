// Package stages takes each stage of the line alone, on the 12 KiB Pod of the fixture: what it allocates, as a test,
// and how long it takes, as a benchmark.
package stages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/bench"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/file"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

const (
	// batchSize is how many events go through a stage that takes batches: as many of the fixture as the line takes.
	batchSize = 450
	pods      = 512
	// window is how many records are in memory at a time, about as many bytes as a queue takes. They are in no
	// processor's cache when their turn comes.
	window   = 4096
	sinkName = "null"
	uid      = "8a5b1c3d-2e4f-4a6b-8c7d-9e0f1a2b3c4d"
)

// stage is one of the line: it takes as many events as it is told.
type stage struct {
	name   string
	most   float64 // allocations an event
	events func(b testing.TB, n int)
}

func (s *setup) stages() []stage {
	return []stage{
		{"decode", 0.1, s.decode},           // objects lie together in slabs
		{"list_decode", 0.25, s.listDecode}, // so do those of a list; a page costs a little
		{"queue", 0.01, s.queue},            // its ring
		{"distribute", 1.05, s.distribute},  // the record, which is made here in place of the source
		{"encode", 1.01, s.encode},          // what a message says of the object, in one piece
		{"file_append", 0.1, s.append},
		{"commit", 0.1, s.commit},
	}
}

// What a stage allocates an event is exact, where its time is not. Of one that takes batches, a share of what the batch
// allocates is each event's: on a busy machine batches are smaller, so the least of three runs counts.
func TestStagesAllocateWhatTheyMust(t *testing.T) {
	for _, one := range newSetup(t).stages() {
		const events = 40 * batchSize
		got := math.Inf(1)
		for range 3 {
			got = min(got, testing.AllocsPerRun(1, func() { one.events(t, events) })/events)
		}
		if got > one.most {
			t.Errorf("stage %s allocates %.3f times an event, want at most %.3f", one.name, got, one.most)
		}
	}
}

func BenchmarkStages(b *testing.B) {
	for _, one := range newSetup(b).stages() {
		b.Run(one.name, func(b *testing.B) {
			b.ReportAllocs()
			one.events(b, b.N)
		})
	}
}

// setup is what the stages work on.
type setup struct {
	ctx     context.Context
	page    []byte // a list of pods
	frames  []byte // the same pods as frames of a watch
	records []change.Record
	store   *checkpoint.Store
	log     sink.Sink
}

func newSetup(t testing.TB) *setup {
	s := &setup{ctx: context.Background(), page: []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`)}
	for i := range pods {
		pod := strings.TrimSpace(strings.NewReplacer(
			"__NAME__", fmt.Sprintf("web-7d4b9c6f5-%07d", i), "__UID__", fmt.Sprintf("3f1c2b7a-0d4e-4a52-9c11-%012d", i),
			"__RV__", fmt.Sprint(1_000_000_000+i),
		).Replace(bench.PodTemplate()))
		s.page = append(append(s.page, strings.Replace(pod, `"kind":"Pod","apiVersion":"v1",`, "", 1)...), ',')
		s.frames = append(s.frames, `{"type":"MODIFIED","object":`+pod+"}\n"...)
	}
	s.page = append(s.page[:len(s.page)-1], "]}"...)
	// The name is one that must not be made for each record: it has a group, and is longer than what fits on the stack.
	stream := &change.Stream{Resource: change.Resource{Group: "benchmarks.kubecdc.example.com", Version: "v1", Name: "pods", Kind: "Pod"}}
	reader := frame.NewReader(&loop{text: s.frames}, frame.Options{})
	for range window {
		f, err := reader.Next()
		must(t, err)
		s.records = append(s.records, change.Record{
			Stream: stream, Op: change.Updated, Key: change.Key{Namespace: f.Object.Namespace, Name: f.Object.Name},
			UID: f.Object.UID, ResourceVersion: f.Object.ResourceVersion, Object: f.Object.JSON, Received: time.Now(),
		})
	}
	var err error
	s.store, err = checkpoint.Open(s.ctx, filepath.Join(t.TempDir(), "state"), checkpoint.Options{})
	must(t, err)
	s.log = file.New(file.Options{Path: filepath.Join(t.TempDir(), "changes.ndjson")})
	must(t, s.log.Open(s.ctx, sink.Opening{}))
	t.Cleanup(func() { must(t, errors.Join(s.log.Close(s.ctx), s.store.Close())) })
	return s
}

// loop repeats a text for ever, in the pieces of a TLS connection.
type loop struct {
	text []byte
	at   int
}

func (l *loop) Read(p []byte) (int, error) {
	n := copy(p[:min(len(p), 16<<10)], l.text[l.at:])
	l.at = (l.at + n) % len(l.text)
	return n, nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// decode scans frames of a watch.
func (s *setup) decode(b testing.TB, n int) {
	reader := frame.NewReader(&loop{text: s.frames}, frame.Options{})
	queued := make([][]byte, window)
	for i := range n {
		f, err := reader.Next()
		must(b, err)
		queued[i%window] = f.Object.JSON
	}
}

// errEnough ends a list.
var errEnough = errors.New("enough")

// listDecode scans pages of a list.
func (s *setup) listDecode(b testing.TB, n int) {
	each := func(frame.Object) error {
		if n--; n == 0 {
			return errEnough
		}
		return nil
	}
	for n > 0 {
		_, err := frame.ScanList(io.LimitReader(&loop{text: s.page}, int64(len(s.page))), frame.Options{Kind: "Pod", APIVersion: "v1"}, each)
		if !errors.Is(err, errEnough) {
			must(b, err)
		}
	}
}

// queue puts records in a queue and takes them out in batches.
func (s *setup) queue(b testing.TB, n int) {
	queue := fifo.NewQueue(fifo.Limit{Bytes: 64 << 20, Records: 1 << 16})
	var batch []*change.Record
	for i := range n {
		rec := &s.records[i%window]
		if !queue.Reserve(rec.Size()) {
			b.Fatal("the queue is full")
		}
		queue.Push(rec)
		if queue.Len() == batchSize {
			batch = queue.Pop(batch[:0], fifo.Limit{Bytes: 64 << 20, Records: batchSize})
		}
	}
}

// distribute runs a pipeline whose sink takes everything at once and whose records change no state: they name the sink
// that they are for. It is the line, the queue, the listener and the tracker, and nothing of the disk.
func (s *setup) distribute(b testing.TB, n int) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	stream := *s.records[0].Stream
	must(b, pipeline.Run(ctx, pipeline.Config{
		ClusterUID: uid, Store: s.store, StopTimeout: time.Minute, Observer: pipeline.NopObserver(),
		Sinks: []listener.Sink{{
			Name: sinkName, Target: &nullSink{want: n, done: cancel}, Encoder: nullEncoder{},
			Queue: fifo.Limit{Bytes: 64 << 20, Records: 1 << 16},
		}},
		Sources: []pipeline.Source{{
			Stream: stream, Join: func(*listener.Intake) {},
			Run: func(ctx context.Context, sinks []*listener.Intake) (over bool) {
				for i := range n {
					rec := s.records[i%window] // a new one, as the line gets it
					rec.Stream, rec.Seq = &stream, uint64(i+1)
					if err := sinks[0].Push(ctx, &rec); err != nil {
						return false
					}
				}
				<-ctx.Done()
				return false
			},
		}},
	}))
}

// nullSink takes everything, and says when that was enough.
type nullSink struct {
	want, seen int
	done       func()
}

func (*nullSink) Open(context.Context, sink.Opening) error { return nil }
func (*nullSink) Close(context.Context) error              { return nil }

func (n *nullSink) Write(_ context.Context, batch []sink.Message) (sink.Mark, error) {
	if n.seen += len(batch); n.seen == n.want {
		n.done()
	}
	return "null", nil
}

// nullEncoder makes a message of nothing.
type nullEncoder struct{}

func (nullEncoder) Encode(_ context.Context, dst []sink.Message, _ *change.Record) ([]sink.Message, error) {
	return append(dst, sink.Message{}), nil
}
func (nullEncoder) Reset() {}

// encode makes CloudEvents.
func (s *setup) encode(b testing.TB, n int) {
	encoder := encode.NewEncoder(encode.Options{Cluster: "bench", ClusterUID: uid})
	var messages []sink.Message
	for i := range n {
		if i%batchSize == 0 {
			encoder.Reset()
			messages = messages[:0]
		}
		var err error
		messages, err = encoder.Encode(s.ctx, messages, &s.records[i%window])
		must(b, err)
	}
}

// append writes batches of CloudEvents to a file, each with its fsync.
func (s *setup) append(b testing.TB, n int) {
	encoder := encode.NewEncoder(encode.Options{Cluster: "bench", ClusterUID: uid})
	var messages []sink.Message
	for i := range window {
		var err error
		messages, err = encoder.Encode(s.ctx, messages, &s.records[i])
		must(b, err)
	}
	for at := 0; n > 0; at = (at + batchSize) % (window - batchSize) {
		batch := messages[at : at+min(n, batchSize)]
		_, err := s.log.Write(s.ctx, batch)
		must(b, err)
		n -= len(batch)
	}
}

// commit saves what a sink was told in batches, each with its fsync.
func (s *setup) commit(b testing.TB, n int) {
	state, err := s.store.LoadSink(sinkName)
	must(b, err)
	resource := s.records[0].Stream.Resource.String()
	for i := range n {
		rec := &s.records[i%window]
		at := checkpoint.Point{History: 1, Version: rec.ResourceVersion}
		item := checkpoint.Item{
			Kind: checkpoint.Told, Resource: resource, Scope: checkpoint.Others, At: at, Given: at, Key: rec.Key, UID: rec.UID,
		}
		must(b, state.Acked(&item))
		if i%batchSize == batchSize-1 || i == n-1 {
			state.Mark = fmt.Sprint(i)
			must(b, s.store.SaveSinks([]*checkpoint.SinkState{state}, checkpoint.Spools{}, nil))
		}
	}
}
