package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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

// setup is what the stages work on.
type setup struct {
	ctx     context.Context
	dir     string
	page    []byte // a list of pods
	frames  []byte // the same pods as frames of a watch
	records []change.Record
	store   *checkpoint.Store
	log     sink.Sink
}

// newSetup makes one whose files are in the directory.
func newSetup(ctx context.Context, dir string) (*setup, error) {
	s := &setup{ctx: ctx, dir: dir, page: []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`)}
	for i := range pods {
		pod := strings.TrimSpace(strings.NewReplacer(
			"__NAME__", fmt.Sprintf("web-7d4b9c6f5-%07d", i), "__UID__", fmt.Sprintf("3f1c2b7a-0d4e-4a52-9c11-%012d", i),
			"__RV__", fmt.Sprint(1_000_000_000+i),
		).Replace(bench.PodTemplate()))
		s.page = append(append(s.page, strings.Replace(pod, `"kind":"Pod","apiVersion":"v1",`, "", 1)...), ',')
		s.frames = append(s.frames, `{"type":"MODIFIED","object":`+pod+"}\n"...)
	}
	s.page = append(s.page[:len(s.page)-1], "]}"...)
	if err := s.decodeRecords(); err != nil {
		return nil, err
	}
	var err error
	if s.store, err = checkpoint.Open(ctx, filepath.Join(dir, "stages"), checkpoint.Options{}); err != nil {
		return nil, err
	}
	return s, s.renew()
}

// renew begins with an empty file: one that grows for ever is bound by the disk.
func (s *setup) renew() (err error) {
	path := filepath.Join(s.dir, "stages.ndjson")
	if s.log != nil {
		if err := s.log.Close(s.ctx); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	s.log = file.New(file.Options{Path: path})
	return s.log.Open(s.ctx, sink.Opening{})
}

func (s *setup) decodeRecords() error {
	// The name is one that must not be made for each record: it has a group, and is longer than what fits on the stack.
	stream := &change.Stream{Resource: change.Resource{Group: "benchmarks.kubecdc.example.com", Version: "v1", Name: "pods", Kind: "Pod"}}
	reader := frame.NewReader(&loop{text: s.frames}, frame.Options{})
	for range window {
		f, err := reader.Next()
		if err != nil {
			return err
		}
		s.records = append(s.records, change.Record{
			Stream: stream, Op: change.Updated, Key: change.Key{Namespace: f.Object.Namespace, Name: f.Object.Name},
			UID: f.Object.UID, ResourceVersion: f.Object.ResourceVersion, Object: f.Object.JSON, Received: time.Now(),
		})
	}
	return nil
}

func (s *setup) close() error { return errors.Join(s.log.Close(s.ctx), s.store.Close()) }

// record is the n-th record, a new one as the line gets it.
func (s *setup) record(n int) *change.Record {
	rec := s.records[n%window]
	rec.Seq = uint64(n + 1)
	return &rec
}

func (s *setup) stages() []stage {
	return []stage{
		{name: "decode", events: s.decode},
		{name: "list_decode", events: s.listDecode, apart: true},
		{name: "queue", events: s.queue, apart: true}, // distribute has it
		{name: "distribute", events: s.distribute},
		{name: "encode", events: s.encode},
		{name: "file_append", events: s.append},
		{name: "commit", events: s.commit},
	}
}

// decode scans frames of a watch.
func (s *setup) decode(b testing.TB, n int) {
	reader := frame.NewReader(&loop{text: s.frames}, frame.Options{})
	queued := make([][]byte, window)
	for i := range n {
		f, err := reader.Next()
		fail(b, "decode", err)
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
			fail(b, "decode a list", err)
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
	target := &nullSink{want: n, done: cancel}
	err := pipeline.Run(ctx, pipeline.Config{
		ClusterUID: uid, Store: s.store, StopTimeout: time.Minute, Observer: pipeline.NopObserver(),
		Sinks: []listener.Sink{{
			Name: sinkName, Target: target, Encoder: nullEncoder{}, Queue: fifo.Limit{Bytes: 64 << 20, Records: 1 << 16},
		}},
		Sources: []pipeline.Source{{
			Stream: stream, Join: func(*listener.Intake) {},
			Run: func(ctx context.Context, sinks []*listener.Intake) (over bool) {
				for i := range n {
					rec := s.record(i)
					rec.Stream = &stream
					if err := sinks[0].Push(ctx, rec); err != nil {
						return false
					}
				}
				<-ctx.Done()
				return false
			},
		}},
	})
	fail(b, "distribute", err)
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
		fail(b, "encode", err)
	}
}

// append writes batches of CloudEvents to a file, each with its fsync.
func (s *setup) append(b testing.TB, n int) {
	encoder := encode.NewEncoder(encode.Options{Cluster: "bench", ClusterUID: uid})
	var messages []sink.Message
	for i := range window {
		var err error
		messages, err = encoder.Encode(s.ctx, messages, &s.records[i])
		fail(b, "encode", err)
	}
	for at := 0; n > 0; at = (at + batchSize) % (window - batchSize) {
		batch := messages[at : at+min(n, batchSize)]
		_, err := s.log.Write(s.ctx, batch)
		fail(b, "append", err)
		n -= len(batch)
	}
}

// commit saves what a sink was told in batches, each with its fsync.
func (s *setup) commit(b testing.TB, n int) {
	state, err := s.store.LoadSink(sinkName)
	fail(b, "load", err)
	resource := s.records[0].Stream.Resource.String()
	for i := range n {
		rec := &s.records[i%window]
		at := checkpoint.Point{History: 1, Version: rec.ResourceVersion}
		item := checkpoint.Item{
			Kind: checkpoint.Told, Resource: resource, Scope: checkpoint.Others, At: at, Given: at, Key: rec.Key, UID: rec.UID,
		}
		fail(b, "tell", state.Acked(&item))
		if i%batchSize == batchSize-1 || i == n-1 {
			state.Mark = fmt.Sprint(i)
			fail(b, "commit", s.store.SaveSinks([]*checkpoint.SinkState{state}, checkpoint.Spools{}, nil))
		}
	}
}
