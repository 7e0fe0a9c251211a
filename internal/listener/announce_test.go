package listener

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// announcer is a sink that finds a new place with every batch.
type announcer struct{ sink.Sink }

func (announcer) Announce(context.Context, []sink.Message) (add func(sink.Mark) (sink.Mark, error), err error) {
	return func(at sink.Mark) (sink.Mark, error) { return at + "+place", nil }, nil
}

// roomy is a file system in memory on a volume with room.
func roomy() *vfs.MemFS {
	disk := vfs.NewMem()
	disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 40})
	return disk
}

// newBus is a sink whose state is on the file system, until end.
func newBus(t *testing.T, fs vfs.FS) (l *Listener, books *Books, end func()) {
	t.Helper()
	store, err := checkpoint.Open(t.Context(), "state", checkpoint.OnFS(fs))
	must(t, err)
	books = NewBooks(store, NopObserver(), nil)
	config := &Config{Store: store, Observer: NopObserver(), Work: func(bool) {}, Stops: NewStops(1)}
	if l, err = New(0, &Sink{Name: "bus", Target: announcer{}}, config, books); err != nil {
		t.Fatal(err)
	}
	return l, books, func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestI5APlaceIsInTheMarkOfWhatIsAcknowledged, also where a save failed before: the saved mark has the place before
// something is written there, and goes on from what the sink had, not from before it.
func TestI5APlaceIsInTheMarkOfWhatIsAcknowledged(t *testing.T) {
	disk := vfs.NewMem()
	room := func(free uint64) { disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: free, TotalBytes: 1 << 40}) }
	room(1 << 40)
	l, books, end := newBus(t, disk)
	defer end()
	acked := func(mark sink.Mark) {
		l.use(func(*fifo.Backlog) { l.mark, l.ledger.mark, l.ledger.marked = mark, string(mark), true })
	}
	acked("1")
	must(t, books.Save(t.Context()))
	acked("2")
	room(1)
	if err := books.save(); err == nil || !strings.Contains(err.Error(), "free") {
		t.Fatalf("a save on a full disk: %v", err)
	}
	room(1 << 40)
	acked("3")
	must(t, l.announce(t.Context(), nil))
	state, err := l.Store.LoadSink("bus")
	must(t, err)
	if state.Mark != "3+place" || l.mark != "3+place" {
		t.Errorf("saved is the mark %q, and the sink goes on from %q, want 3+place", state.Mark, l.mark)
	}
}

// TestI5ADiskThatCannotBeReadLosesNothingOfASave: what was taken for it is saved by the next one.
func TestI5ADiskThatCannotBeReadLosesNothingOfASave(t *testing.T) {
	var broken atomic.Bool
	fs := errorfs.Wrap(roomy(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && (op.Kind == errorfs.OpFileRead || op.Kind == errorfs.OpFileReadAt) {
			return errorfs.ErrInjected
		}
		return nil
	}))
	life := func(work func(l *Listener, books *Books)) {
		l, books, end := newBus(t, fs)
		l.state.Merges = true // so that what is saved of an object is looked up
		work(l, books)
		end()
	}
	pod := func(n int) checkpoint.Object {
		return checkpoint.Object{Resource: "pods", Key: change.Key{Name: fmt.Sprintf("pod-%05d", n)}}
	}
	const pods = 5000 // so that a start reads not all of them
	of := pod(pods / 2)
	tell := func(l *Listener, of checkpoint.Object, version string) {
		item := checkpoint.Item{Kind: checkpoint.Told, Resource: of.Resource, Scope: checkpoint.Others, At: at(version), Key: of.Key, UID: "u"}
		l.use(func(*fifo.Backlog) { l.ledger.add(entry{Item: item, as: acked}) })
	}
	life(func(l *Listener, books *Books) {
		for n := range pods {
			tell(l, pod(n), "1")
		}
		must(t, books.Save(t.Context()))
	})
	life(func(l *Listener, books *Books) {
		tell(l, of, "2")
		broken.Store(true)
		if err := books.save(); err == nil {
			t.Fatal("nothing was read")
		}
		broken.Store(false)
		l.use(func(*fifo.Backlog) { l.ledger.mark, l.ledger.marked = "3", true })
		must(t, books.Save(t.Context()))
		state, err := l.Store.LoadSink("bus")
		must(t, err)
		if row, err := state.SavedRow(of); row.At != at("2") || state.Mark != "3" || err != nil {
			t.Errorf("at the mark %q the object is saved at %v (%v), want 2 at 3", state.Mark, row.At, err)
		}
	})
}

// TestI3ANoteInTheLogIsNotWrittenAgain, also where it names its object by a hash: the exporter was killed before it had
// saved that the note is written.
func TestI3ANoteInTheLogIsNotWrittenAgain(t *testing.T) {
	l, books, end := newBus(t, roomy())
	defer end()
	rec := &change.Record{
		Op: change.Added, Stream: &change.Stream{Resource: change.Resource{Name: "pods"}},
		Key: change.Key{Namespace: "shop", Name: "no.subject"}, UID: "u", ResourceVersion: "7",
	}
	note := change.ShorterNote(change.NoteOf(rec, "no_place", ""))
	id := note.ID("cluster")
	fold := folding{books: books, sink: &l.Intake, ours: func(*change.ID) (bool, error) { return true, nil }}
	fold.take(id.String())
	must(t, fold.flush())
	must(t, books.Save(t.Context()))
	row, err := l.Newest(checkpoint.Object{Resource: "pods", Key: rec.Key})
	if err != nil || row.UID != "u" || row.At.Version != "7" {
		t.Errorf("of the object the sink was told %+v (%v), want version 7", row, err)
	}
}

// must ends the test where there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
