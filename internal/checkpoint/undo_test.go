package checkpoint

import (
	"maps"
	"math/rand"
	"slices"
	"strconv"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// inMemory are options for a state in memory.
func inMemory(fs vfs.FS) Options {
	opts := OnFS(fs)
	opts.Logger, opts.usage = quiet(), func(string) (vfs.DiskUsage, error) { return vfs.DiskUsage{AvailBytes: 1 << 40}, nil }
	opts.piece = 200
	return opts
}

// household is a state of several sinks, some of which have records on disk now and then, and a journal of it.
type household struct {
	t       *testing.T
	r       *rand.Rand
	fs      vfs.FS
	store   *Store
	journal *folded
	sinks   map[string]*SinkState
	life    map[string]*history
	extents map[string]fifo.Spool
	clean   map[string]map[string]string // the rows of each sink as they were when nothing was on disk for it
}

func newHousehold(t *testing.T, seed int64) *household {
	h := &household{
		t: t, r: rand.New(rand.NewSource(seed)), fs: vfs.NewMem(), journal: &folded{t: t, rows: map[string]string{}},
		sinks: map[string]*SinkState{}, life: map[string]*history{}, extents: map[string]fifo.Spool{}, clean: map[string]map[string]string{},
	}
	for _, name := range []string{"a", "a.b", "b"} {
		h.life[name] = &history{r: h.r, version: 10, at: 1}
	}
	h.open()
	return h
}

func (h *household) open() {
	opts := inMemory(h.fs)
	opts.Journal = h.journal
	var err error
	h.store, err = Open(h.t.Context(), "state", opts)
	must(h.t, err)
	for name := range h.life {
		h.load(name)
	}
}

func (h *household) load(name string) {
	var err error
	h.sinks[name], err = h.store.LoadSink(name)
	must(h.t, err)
}

func (h *household) restart() {
	must(h.t, h.store.Close())
	h.open()
}

// rowsOfSink are those of the rows that are the sink's.
func rowsOfSink(rows map[string]string, name string) map[string]string {
	rows = maps.Clone(rows)
	maps.DeleteFunc(rows, func(key, _ string) bool {
		of, is := sinkOf([]byte(key))
		return !is || string(of) != name
	})
	return rows
}

// rowsOfAll are the rows that are no sink's.
func rowsOfAll(rows map[string]string) map[string]string {
	rows = maps.Clone(rows)
	maps.DeleteFunc(rows, func(key, _ string) bool {
		_, is := sinkOf([]byte(key))
		return is || key[0] == tableUndo
	})
	return rows
}

// note notes what the sinks are that have nothing on disk.
func (h *household) note() {
	rows := rowsOf(h.t, h.store)
	for name := range h.life {
		if spool := h.extents[name]; spool.Empty() {
			h.clean[name] = rowsOfSink(rows, name)
		}
	}
}

// act changes something at random.
func (h *household) act() {
	name := slices.Sorted(maps.Keys(h.life))[h.r.Intn(3)]
	state, spool := h.sinks[name], h.extents[name]
	switch h.r.Intn(24) {
	case 0:
		h.restart()
	case 1:
		must(h.t, h.store.Commit(Batch{
			PendingSnapshots: []PendingSnapshot{{Stream: "pods", Owed: change.Owed{Sink: name, Reason: change.Requested}}},
			Heard:            map[string][]byte{name: []byte(strconv.Itoa(h.r.Int()))},
		}))
	case 2:
		must(h.t, h.store.SetCluster(Cluster{Name: "c", UID: strconv.Itoa(h.r.Int())}))
	case 3:
		must(h.t, h.store.Recall(state, true))
		h.extents[name] = fifo.Spool{}
	case 4:
		must(h.t, h.store.ForgetSink(name))
		h.extents[name] = fifo.Spool{}
		h.load(name)
	default:
		h.tell(state, spool)
	}
	h.note()
}

// tell tells the sink something, and perhaps puts some of it on disk, or takes all from there.
func (h *household) tell(state *SinkState, spool fifo.Spool) {
	for range 1 + h.r.Intn(4) {
		i := h.life[state.Name].next()
		must(h.t, state.Told(&i))
	}
	state.Mark = "m" + strconv.Itoa(h.life[state.Name].version)
	spools := Spools{}
	switch main := &spool[fifo.Main]; {
	case h.r.Intn(4) == 0:
		spools.Chunks = map[string][]fifo.Chunk{state.Name: {{Part: fifo.Main, Number: main.Next, Value: []byte("chunk")}}}
		main.Next, main.Bytes, main.Records = main.Next+1, main.Bytes+5, main.Records+1
	case h.r.Intn(4) == 0:
		*main = fifo.Extent{First: main.Next, Next: main.Next}
	}
	must(h.t, state.Spooled(!spool.Empty(), state))
	if spool != h.extents[state.Name] {
		spools.Extents = map[string]fifo.Spool{state.Name: spool}
	}
	must(h.t, h.store.SaveSinks([]*SinkState{state}, spools, nil))
	h.extents[state.Name] = spool
}

// judge compares what the journal makes of another directory with what the sinks were.
func (h *household) judge() (takenBack int) {
	h.t.Helper()
	now := rowsOf(h.t, h.store)
	if !maps.Equal(h.journal.rows, now) {
		h.t.Fatalf("the journal has %q, want %q", h.journal.rows, now)
	}
	opts := inMemory(vfs.NewMem())
	r, err := Restore(h.t.Context(), "other", opts)
	must(h.t, err)
	for key, value := range h.journal.rows {
		must(h.t, r.Apply(Changes{}.Set([]byte(key), []byte(value))))
	}
	must(h.t, r.Finish([]byte("place"), func(string, []byte) error { return nil }))
	must(h.t, r.Close())
	opts.Journal = &folded{t: h.t, rows: map[string]string{}}
	restored, err := Open(h.t.Context(), "other", opts)
	must(h.t, err)
	have := rowsOf(h.t, restored)
	if some, err := restored.holds([]byte{tableUndo}); some || err != nil {
		h.t.Fatalf("something is to be undone in a new state (%v)", err)
	}
	place, err := restored.TakeLogged([]byte("claim"))
	must(h.t, err)
	for name := range h.life {
		if want := h.clean[name]; !maps.Equal(rowsOfSink(have, name), want) {
			h.t.Fatalf("sink %s is restored as %q, and was %q when nothing was on disk", name, rowsOfSink(have, name), want)
		}
		if spool := h.extents[name]; !spool.Empty() {
			takenBack++
		}
	}
	if !maps.Equal(rowsOfAll(have), rowsOfAll(now)) {
		h.t.Fatalf("restored %q, want %q", rowsOfAll(have), rowsOfAll(now))
	}
	if isWhole := place != nil; isWhole == (takenBack > 0) {
		h.t.Fatalf("the log has all of it: %v, and %d sinks are others", isWhole, takenBack)
	}
	must(h.t, restored.Close())
	return takenBack
}

// TestI11EachSinkIsRestoredAsItWasWithNothingOnDisk: whoever has the rows of the state, but no record that is on its
// disk, has each sink as it was when nothing was there for it, and all others as they are.
func TestI11EachSinkIsRestoredAsItWasWithNothingOnDisk(t *testing.T) {
	takenBack := 0
	for seed := range int64(20) {
		t.Run(strconv.FormatInt(seed, 10), func(t *testing.T) {
			h := newHousehold(t, seed)
			for i := range 150 {
				if h.act(); i%10 == 0 {
					takenBack += h.judge()
				}
			}
			must(t, h.store.Close())
		})
	}
	if takenBack < 100 {
		t.Errorf("only %d times a sink was another one", takenBack)
	}
}

// TestI6NothingIsLeftToBeUndone where nothing is on disk.
func TestI6NothingIsLeftToBeUndone(t *testing.T) {
	h := newHousehold(t, 1)
	for range 300 {
		h.act()
		for name, spool := range h.extents {
			some, err := h.store.holds(sinkPrefix(tableUndo, name))
			must(t, err)
			if some == spool.Empty() {
				t.Fatalf("undo rows of %s: %v, its spool is %v", name, some, spool)
			}
		}
	}
	must(t, h.store.Close())
}

// TestI11ACopyThatIsHalfTakenBackIsFilledAnew: the log would not go on from it.
func TestI11ACopyThatIsHalfTakenBackIsFilledAnew(t *testing.T) {
	opts := inMemory(vfs.NewMem())
	c := filledCopy(t, "copy", opts)
	must(t, c.Apply(Changes{}.Set(append(sinkPrefix(tableUndo, "first"), markKey("first")...), []byte("\x01earlier")), []byte("1")))
	some, err := c.into.takeBack()
	if must(t, err); !some {
		t.Fatal("nothing was taken back")
	}
	mark, _, err := c.into.get(markKey("first"))
	if must(t, err); string(mark) != "earlier" {
		t.Errorf("the mark is %q", mark)
	}
	must(t, c.Close())
	c, err = OpenCopy(t.Context(), "copy", opts)
	must(t, err)
	if c.Place() != nil {
		t.Error("it goes on")
	}
	must(t, c.Close())
}
