package statelog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// roomy is a file system in memory on a volume with room.
type roomy struct{ vfs.FS }

func (roomy) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 40}, nil
}

// estate is the state of some sinks, what it was, and its log. Now and then there are records on disk for a sink.
type estate struct {
	*broker
	t       *testing.T
	fs      vfs.FS
	store   *checkpoint.Store
	states  map[string]*checkpoint.SinkState
	version int
	queue   *Queue
	session *session
	clean   map[string]string   // each sink as its own log has it, and "" for what is no sink's
	history []map[string]string // what clean was
	known   int                 // the oldest that the log may have, by place in history
	taken   int                 // the newest that is in it if what is written now is
	onDisk  int                 // sinks with records on disk, where somebody looked
}

func newEstate(t *testing.T, random *rand.Rand, lazy bool) *estate {
	e := &estate{broker: newBroker(random, lazy), t: t, fs: roomy{vfs.NewMem()}, clean: map[string]string{}, known: -1, taken: -1}
	e.open(NewQueue())
	e.note()
	return e
}

func (e *estate) must(err error) {
	if e.t.Helper(); err != nil {
		e.t.Fatal(err)
	}
}

func sinkNames() []string { return []string{"lake", "lake.b", "pond"} }

func openOn(fs vfs.FS, journal checkpoint.Journal) (*checkpoint.Store, map[string]*checkpoint.SinkState, error) {
	o := checkpoint.OnFS(fs)
	o.Logger, o.Journal = slog.New(slog.DiscardHandler), journal
	store, err := checkpoint.Open(context.Background(), "state", o)
	states := map[string]*checkpoint.SinkState{}
	for _, name := range sinkNames() {
		if err == nil {
			states[name], err = store.LoadSink(name)
		}
	}
	return store, states, err
}

func (e *estate) open(queue *Queue) {
	var err error
	e.queue = queue
	e.queue.most = 4000
	e.store, e.states, err = openOn(e.fs, e.queue)
	e.must(err)
}

// begin is the life of a process.
func (e *estate) begin() error {
	e.must(e.store.Close())
	e.open(NewQueue())
	l, err := New(Options{
		Place: e.place(), Of: Identity{Cluster: "c", Instance: "i"}, Store: e.store, Queue: e.queue,
		Files:  func() iter.Seq2[string, error] { return func(func(string, error) bool) {} },
		File:   func(string) ([]byte, error) { return nil, nil },
		Failed: func(error) {}, Written: func() { e.known = max(e.known, e.taken) },
	})
	e.must(err)
	if e.session, err = l.begin(context.Background()); err == nil {
		e.session.grain = Grain{Part: 300, Page: 400, Since: 4000}
	}
	return err
}

func (e *estate) step() error {
	e.taken = len(e.history) - 1
	_, err := e.session.step(context.Background())
	return err
}

// describe is all that the state has of the sink.
func (e *estate) describe(store *checkpoint.Store, state *checkpoint.SinkState) string {
	heard, err := store.Heard(state.Name)
	e.must(err)
	pending, err := store.PendingSnapshots()
	e.must(err)
	pending = slices.DeleteFunc(pending, func(d checkpoint.PendingSnapshot) bool { return d.Sink != state.Name })
	text := fmt.Sprintf("%s %v %s %+v", state.Mark, state.Places, heard, pending)
	for row, err := range state.Objects("pods", checkpoint.Others, "") {
		e.must(err)
		text += fmt.Sprintf(" %+v", row)
	}
	return text
}

// note notes what the state is.
func (e *estate) note() {
	cluster, _, err := e.store.Cluster()
	e.must(err)
	e.clean[""] = cluster.UID
	for name, state := range e.states {
		e.clean[name] = e.describe(e.store, state)
	}
	e.history = append(e.history, maps.Clone(e.clean))
}

// save tells a sink something, and perhaps puts some of it on disk or takes all from there.
func (e *estate) save() {
	name := sinkNames()[e.random.IntN(3)]
	state := e.states[name]
	e.version++
	switch e.random.IntN(6) {
	case 0:
		e.must(e.store.SetCluster(checkpoint.Cluster{Name: "c", UID: strconv.Itoa(e.version)}))
	case 1:
		e.must(e.store.Commit(checkpoint.Batch{
			PendingSnapshots: []checkpoint.PendingSnapshot{{Stream: "pods", Owed: change.Owed{Sink: name, Reason: change.Requested}}},
			Heard:            map[string][]byte{name: strconv.AppendInt(nil, int64(e.version), 10)},
		}))
	default:
		e.tell(state)
	}
	e.note()
}

func (e *estate) tell(state *checkpoint.SinkState) {
	spool, err := e.store.Spool(state.Name)
	e.must(err)
	at := checkpoint.Point{History: 1, Version: strconv.Itoa(e.version)}
	item := checkpoint.Item{
		Kind: checkpoint.Told, Resource: "pods", Scope: checkpoint.Others, At: at, Given: at.Below(),
		Key: change.Key{Namespace: "shop", Name: strconv.Itoa(e.random.IntN(12))}, UID: "u", Gone: e.random.IntN(4) == 0,
	}
	spools, main := checkpoint.Spools{Extents: map[string]fifo.Spool{}}, &spool[fifo.Main]
	switch e.random.IntN(5) {
	case 0:
		e.must(state.Spooled(&item, false))
		spools.Chunks = map[string][]fifo.Chunk{state.Name: {{Part: fifo.Main, Number: main.Next, Value: []byte("chunk")}}}
		main.Next, main.Bytes, main.Records = main.Next+1, main.Bytes+5, main.Records+1
		spools.Extents[state.Name] = spool
	case 1:
		*main = fifo.Extent{First: main.Next, Next: main.Next}
		spools.Extents[state.Name] = spool
		fallthrough
	default:
		e.must(state.Found(&item))
		state.Mark = at.Version
	}
	state.Waits(!spool.Empty())
	e.must(e.store.SaveSinks([]*checkpoint.SinkState{state}, spools, nil))
}

// restored is a directory that a new process makes of the log.
func (e *estate) restored() (vfs.FS, error) {
	found, err := Look(context.Background(), e.place(), Bid{Of: Identity{Cluster: "c"}})
	if err != nil {
		return nil, err
	}
	fs := roomy{vfs.NewMem()}
	o := checkpoint.OnFS(fs)
	o.Logger = slog.New(slog.DiscardHandler)
	r, err := checkpoint.Restore(context.Background(), "state", o)
	e.must(err)
	place, err := found.Into(context.Background(), r.Apply)
	e.must(err)
	e.must(r.Finish(place, func(string, []byte) error { return nil }))
	return fs, r.Close()
}

// judge finds in the log a state that was, none from before what it was known to have: each sink as its own log has it.
func (e *estate) judge() (fs vfs.FS) {
	e.t.Helper()
	fs, err := e.restored()
	if errors.Is(err, ErrNothing) && e.known < 0 {
		return nil
	}
	e.must(err)
	store, states, err := openOn(fs, NewQueue())
	e.must(err)
	cluster, _, err := store.Cluster()
	e.must(err)
	have := map[string]string{"": cluster.UID}
	for name, state := range states {
		have[name] = e.describe(store, state)
	}
	e.must(store.Close())
	if !slices.ContainsFunc(e.history[max(e.known, 0):], func(was map[string]string) bool { return maps.Equal(was, have) }) {
		e.t.Fatalf("the log has a state that never was since moment %d of %d:\n%q\nnow it is\n%q", e.known, len(e.history), have, e.clean)
	}
	for name := range e.states {
		if spool, err := e.store.Spool(name); err == nil && !spool.Empty() {
			e.onDisk++
		}
	}
	return fs
}

// become loses the directory and goes on with another one.
func (e *estate) become(fs vfs.FS) {
	e.must(e.store.Close())
	e.fs = fs
	e.open(NewQueue())
	e.note()
	e.known = len(e.history) - 1
}

// TestI11TheLogStandsStillForNoSink lets a log crash between any two messages while there are records on disk for some
// sinks, segments begin and end, and loses the directory now and then. Whoever reads the log finds each sink as it was
// in the newest state of the log, without what is on disk for it.
func TestI11TheLogStandsStillForNoSink(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 10
	}
	restored, segments, onDisk := 0, 0, 0
	for seed := range seeds {
		random := rand.New(rand.NewPCG(uint64(seed), 3))
		e := newEstate(t, random, seed%2 == 0)
		for range 6 {
			e.taken, e.left = e.known, random.IntN(80)
			err := e.begin()
			for range 50 {
				switch {
				case err != nil || random.IntN(2) == 0:
					e.save()
				default:
					err = e.step()
				}
				if err == nil && e.session.segment != nil && e.session.whole {
					segments++
				}
			}
			if err != nil && !errors.Is(err, errCrash) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			e.left = -1
			if fs := e.judge(); fs != nil && random.IntN(3) == 0 {
				restored++
				e.become(fs)
			}
		}
		onDisk += e.onDisk
		e.must(e.store.Close())
	}
	if restored < seeds/2 || segments < seeds || onDisk < seeds {
		t.Errorf("%d times the directory was lost, %d units were of a further segment, %d times a sink had records on disk", restored, segments, onDisk)
	}
}
