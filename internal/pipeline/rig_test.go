package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/encode"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const clusterUID = "0b6f3c1e-8a4d-4c39-9d2b-0a1b2c3d4e5f"

func pods() change.Stream {
	return change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}
}

func services() change.Stream {
	return change.Stream{Resource: change.Resource{Version: "v1", Name: "services", Kind: "Service"}}
}

// update is a record of the watch.
func update(stream change.Stream, name string, version int) *change.Record {
	text := strconv.Itoa(version)
	return &change.Record{
		Stream: &stream, Op: change.Updated, Key: change.Key{Namespace: "n", Name: name}, UID: "uid-" + name,
		ResourceVersion: text, Object: []byte(`{"v":` + text + `}`), Received: time.Now(),
		Position: change.Position{ResourceVersion: text},
	}
}

// wholeBatch is a record that is a batch of its own.
func wholeBatch() *change.Record {
	rec := update(services(), "x", 3)
	rec.Object = []byte(`"` + strings.Repeat("x", 4<<20) + `"`)
	return rec
}

// memory is a sink whose log is a slice that outlives the sink. Its faults are scripted: each Write asks fault first.
type memory struct {
	mu    sync.Mutex
	log   []string // ids
	fault func(ctx context.Context, batch []sink.Message) error
	opens []sink.Mark
	found []int // by Open: how many ids it returned
	lost  error // of the next Open
}

func (m *memory) Open(_ context.Context, at sink.Opening) error {
	ids, err := m.openAt(at.Mark)
	if err != nil {
		return err
	}
	found := at.After()
	for _, id := range ids {
		found(id)
	}
	return nil
}

func (m *memory) openAt(mark sink.Mark) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opens = append(m.opens, mark)
	lost := m.lost
	m.lost = nil
	if mark == "" || lost != nil {
		return nil, lost
	}
	at, err := strconv.Atoi(string(mark))
	if err != nil {
		return nil, err
	}
	if at > len(m.log) {
		return nil, &sink.LostError{Log: "log", Want: string(mark), Have: strconv.Itoa(len(m.log))}
	}
	m.found = append(m.found, len(m.log)-at)
	return slices.Clone(m.log[at:]), nil
}

func (m *memory) Write(ctx context.Context, batch []sink.Message) (sink.Mark, error) {
	if m.fault != nil && len(batch) > 0 {
		if err := m.fault(ctx, batch); err != nil {
			var rejected *sink.RejectedError
			if errors.As(err, &rejected) {
				return m.append(batch[:rejected.Index]), err
			}
			return "", err
		}
	}
	return m.append(batch), nil
}

func (m *memory) append(batch []sink.Message) sink.Mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, message := range batch {
		m.log = append(m.log, message.ID)
	}
	return sink.Mark(strconv.Itoa(len(m.log)))
}

func (m *memory) Close(context.Context) error { return nil }

// short are the ids in the log as "name/version/op".
func (m *memory) short() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	for _, text := range m.log {
		id, err := change.ParseID(text)
		if err != nil {
			return err.Error()
		}
		all = append(all, fmt.Sprintf("%s/%s/%s", id.Key.Name, id.ResourceVersion, id.Op))
	}
	return strings.Join(all, " ")
}

// rig is a pipeline on a real store, fed by hand.
type rig struct {
	t      *testing.T
	dir    string
	store  *checkpoint.Store
	config Config
	line   chan *Inlet // the line, once a source has it
	ask    chan Request

	mu       sync.Mutex
	requests []string
	failures []string
}

func newRig(t *testing.T, sinks ...delivery.Sink) *rig {
	r := &rig{t: t, dir: t.TempDir(), line: make(chan *Inlet, 2)}
	r.ask = make(chan Request)
	r.config = Config{ClusterUID: clusterUID, Sinks: sinks, StopTimeout: 10 * time.Second, Observer: NopObserver(), Requests: r.ask}
	for _, stream := range []change.Stream{pods(), services()} {
		r.config.Sources = append(r.config.Sources, Source{
			Stream: stream,
			Run: func(ctx context.Context, line *Inlet) error {
				r.line <- line
				<-ctx.Done()
				return nil
			},
			Request: func(owed ...change.Owed) {
				for _, o := range owed {
					r.note(&r.requests, fmt.Sprintf("%s %s %s", stream, o.Reason, o.Sink))
				}
			},
		})
	}
	r.config.Observer.Failed = func(name string, err error) { r.note(&r.failures, name+": "+err.Error()) }
	return r
}

func (r *rig) note(list *[]string, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*list = append(*list, text)
}

func (r *rig) requested() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.requests)
	return strings.Join(r.requests, ", ")
}

// sinkOf makes a sink of the pipeline with room for the records.
func sinkOf(name string, target sink.Sink) delivery.Sink {
	return delivery.Sink{
		Name: name, Target: target, Queue: fifo.Limit{Bytes: 1 << 20, Records: 100},
		Encoder: encode.NewEncoder(encode.Options{Cluster: "c", ClusterUID: clusterUID}),
	}
}

// meet notes in the state that another cluster was behind the name.
func (r *rig) meet(uid string) {
	r.t.Helper()
	store, err := checkpoint.Open(r.t.Context(), r.dir, checkpoint.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := errors.Join(store.MeetCluster(uid), store.Close()); err != nil {
		r.t.Fatal(err)
	}
}

// life runs the pipeline while use feeds it, stops it, and returns Run's error.
func (r *rig) life(use func(line *Inlet)) error {
	r.t.Helper()
	store, err := checkpoint.Open(r.t.Context(), r.dir, checkpoint.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		r.t.Fatal(err)
	}
	r.store, r.config.Store = store, store
	ctx, stop := context.WithCancel(r.t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, r.config) }()
	select {
	case line := <-r.line:
		<-r.line // the other source has it, too
		use(line)
		stop()
		err = <-ended
	case err = <-ended:
	}
	if closeErr := store.Close(); closeErr != nil {
		r.t.Error(closeErr)
	}
	return err
}

func (r *rig) push(line *Inlet, records ...*change.Record) {
	r.t.Helper()
	for _, rec := range records {
		if err := line.Push(r.t.Context(), rec); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) drain(line *Inlet, streams ...change.Stream) {
	r.t.Helper()
	for _, stream := range streams {
		if err := line.Drain(r.t.Context(), stream); err != nil {
			r.t.Fatal(err)
		}
	}
}

// position is the saved resourceVersion, "" for none.
func (r *rig) position(stream change.Stream) string {
	r.t.Helper()
	position, _, err := r.store.Position(stream.String())
	if err != nil {
		r.t.Fatal(err)
	}
	return position.ResourceVersion
}
