package listener

import (
	"context"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// announcer is a sink that finds a new place with every batch.
type announcer struct{ sink.Sink }

func (announcer) Announce(context.Context, []sink.Message) (add func(sink.Mark) (sink.Mark, error), err error) {
	return func(at sink.Mark) (sink.Mark, error) { return at + "+place", nil }, nil
}

// TestI5APlaceIsInTheMarkOfWhatIsAcknowledged, also where a save failed before: the saved mark has the place before
// something is written there, and goes on from what the sink had, not from before it.
func TestI5APlaceIsInTheMarkOfWhatIsAcknowledged(t *testing.T) {
	disk := vfs.NewMem()
	room := func(free uint64) { disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: free, TotalBytes: 1 << 40}) }
	room(1 << 40)
	store, err := checkpoint.Open(t.Context(), "state", checkpoint.OnFS(disk))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	books := NewBooks(store, NopObserver(), nil)
	config := &Config{Store: store, Observer: NopObserver(), Work: func(bool) {}, Stops: NewStops(1)}
	l, err := New(0, &Sink{Name: "bus", Target: announcer{}}, config, books)
	if err != nil {
		t.Fatal(err)
	}
	acked := func(mark sink.Mark) {
		l.use(func(*fifo.Backlog) { l.mark, l.ledger.mark, l.ledger.marked = mark, string(mark), true })
	}
	acked("1")
	if err := books.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	acked("2")
	room(1)
	if err := books.save(); err == nil || !strings.Contains(err.Error(), "free") {
		t.Fatalf("a save on a full disk: %v", err)
	}
	room(1 << 40)
	acked("3")
	if err := l.announce(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	state, err := store.LoadSink("bus")
	if err != nil {
		t.Fatal(err)
	}
	if state.Mark != "3+place" || l.mark != "3+place" {
		t.Errorf("saved is the mark %q, and the sink goes on from %q, want 3+place", state.Mark, l.mark)
	}
}
