package pipeline

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

func widgets() change.Stream {
	return change.Stream{Resource: change.Resource{Group: "example.com", Version: "v1", Name: "widgets", Kind: "Widget"}}
}

// guest is a stream that joins a running pipeline, and is over when end is closed.
type guest struct {
	r     *rig
	began chan struct{}
	end   chan struct{}
}

func newGuest(r *rig) *guest { return &guest{r, make(chan struct{}), make(chan struct{})} }

func (g *guest) source() Source {
	return Source{
		Stream: widgets(),
		Run: func(ctx context.Context, line *Inlet) error {
			close(g.began)
			select {
			case <-ctx.Done():
				return nil
			case <-g.end:
				return errors.Join(line.Drain(ctx, widgets()), ErrOver)
			}
		},
		Request: func(owed ...change.Owed) {
			for _, o := range owed {
				g.r.note(&g.r.requests, "widgets.example.com "+string(o.Reason)+" "+o.Sink)
			}
		},
	}
}

// follow hands the set over, and says who left.
func (r *rig) follow() (sets <-chan *StreamSet, left <-chan string) {
	set, gone := make(chan *StreamSet, 1), make(chan string, 1)
	r.config.Follow = func(ctx context.Context, held *StreamSet) error {
		set <- held
		<-ctx.Done()
		return nil
	}
	r.config.Observer.Left = func(stream change.Stream) { gone <- stream.String() }
	return set, gone
}

// TestI1I5AStreamJoinsAndLeavesARunningPipeline: it is delivered and saved as the others are, can be asked for
// snapshots, and nothing of it is left when it is over; then it can come again, as new.
func TestI1I5AStreamJoinsAndLeavesARunningPipeline(t *testing.T) {
	m := &memory{}
	r := newRig(t, sinkOf("s", m))
	sets, left := r.follow()
	err := r.life(func(line *Inlet) {
		set := <-sets
		for range 2 {
			g := newGuest(r)
			if err := set.Join(g.source()); err != nil {
				t.Fatal(err)
			}
			<-g.began
			if err := set.Join(newGuest(r).source()); err == nil {
				t.Fatal("the stream is added twice")
			}
			r.push(line, update(pods(), "p", 1), update(widgets(), "w", 7))
			r.drain(line, pods(), widgets())
			if got := r.position(widgets()); got != "7" {
				t.Errorf("the saved position is %q, want 7", got)
			}
			if got := r.asks(t, "widgets.example.com"); got != nil {
				t.Errorf("a snapshot of the new stream: %v", got)
			}
			close(g.end)
			if name := <-left; name != "widgets.example.com" || set.Holds(name) {
				t.Fatalf("%s left, and is held: %t", name, set.Holds(name))
			}
			r.forgotten(widgets())
			if err := r.asks(t, "widgets.example.com"); err == nil {
				t.Error("a stream that is over can be asked for a snapshot")
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.short(), "p/1/updated w/7/updated"; strings.Count(got, "w/7/updated") != 2 {
		t.Errorf("the sink has %q, want %q twice", got, want)
	}
	if got := r.requested(); got != "widgets.example.com requested s, widgets.example.com requested s" {
		t.Errorf("asked for %q: a stream that comes again is new, and owes nobody a snapshot", got)
	}
}

// asks asks for a snapshot of the stream.
func (r *rig) asks(t *testing.T, stream string) error {
	t.Helper()
	answer := make(chan error, 1)
	r.ask <- Request{Reason: change.Requested, Streams: []string{stream}, Answer: answer}
	return <-answer
}

// forgotten finds what the state still knows of a stream.
func (r *rig) forgotten(stream change.Stream) {
	r.t.Helper()
	known, err := r.store.Streams()
	subscriptions, sharesErr := r.store.Subscriptions()
	pendingSnapshots, pendingErr := r.store.PendingSnapshots()
	if err := errors.Join(err, sharesErr, pendingErr); err != nil {
		r.t.Fatal(err)
	}
	for _, name := range known {
		if name == stream.String() {
			r.t.Errorf("the state knows stream %s", name)
		}
	}
	for subscription := range subscriptions {
		if subscription.Stream == stream.String() {
			r.t.Errorf("the state has share %+v", subscription)
		}
	}
	for _, pendingSnapshot := range pendingSnapshots {
		if pendingSnapshot.Stream == stream.String() {
			r.t.Errorf("the state has pending snapshot %+v", pendingSnapshot)
		}
	}
}

// TestI2AStreamThatIsOverHoldsNoMarkBack: what the sink's log has of it will not come again.
func TestI2AStreamThatIsOverHoldsNoMarkBack(t *testing.T) {
	m := &memory{}
	r := newRig(t, sinkOf("s", m))
	if err := r.life(func(line *Inlet) { r.push(line, update(pods(), "p", 1)); r.drain(line, pods()) }); err != nil {
		t.Fatal(err)
	}
	stream := widgets()
	unsaved := change.Record{Stream: &stream, Op: change.Deleted, Key: change.Key{Name: "w"}, UID: "u", ResourceVersion: "7"}
	m.log = append(m.log, unsaved.ID(clusterUID).String()) // and then it crashed
	_, left := r.follow()
	g := newGuest(r)
	close(g.end)
	r.config.Sources = append(r.config.Sources, g.source())
	err := r.life(func(line *Inlet) {
		<-left
		r.push(line, update(pods(), "p", 8))
		r.drain(line, pods())
	})
	if err != nil {
		t.Fatal(err)
	}
	r.config.Sources, r.config.Follow = r.config.Sources[:2], nil
	if mark := m.marked(t, r); mark != "3" {
		t.Errorf("the saved mark is %q, want 3", mark)
	}
}

// A resource ends while a sink is away whose log's end is not saved. What is on disk for the sink tells it of
// everything, also of what only its log knows, and also where the resource comes back meanwhile.
func TestI4AStreamEndsWhileASinkIsAwayThatHasMoreOfIt(t *testing.T) {
	for _, again := range []bool{false, true} {
		r, target := withSinkOnly(t, "spool")
		sets, left := r.follow()
		over, pod := make(chan struct{}), r.config.Sources[0]
		r.config.Sources[0].Run = func(ctx context.Context, line *Inlet) error {
			r.line <- line
			select {
			case <-ctx.Done():
				return nil
			case <-over:
				return errors.Join(line.Drain(ctx, pods()), ErrOver)
			}
		}
		last := found(update(pods(), "a", 1), change.Deleted, change.Gone, "20")
		last.FinalStateUnknown = true
		records, want := []*change.Record{blind()[0], last, endAt(20)}, "a/1/updated a/2/updated b/3/updated c/4/updated /20/snapshot.begin a/1/deleted b/3/deleted c/4/deleted /20/snapshot.end"
		if err := r.life(func(line *Inlet) {
			set := <-sets
			r.push(line, records...)
			line.listeners[0].Member().Patience.SpillNow()
			close(over)
			<-left
			if again {
				if err := set.Join(pod); err != nil {
					t.Fatal(err)
				}
				<-r.line
				r.push(line, update(pods(), "d", 30))
				want += " d/30/updated"
			}
			close(target.may)
			r.await("all", func() bool { return target.short() == want || len(target.short()) > len(want) })
		}); err != nil {
			t.Fatal(err)
		}
		if got := target.short(); got != want {
			t.Errorf("again is %t: log is\n%s, want\n%s", again, got, want)
		}
	}
}

// marked is the mark that the state has.
func (m *memory) marked(t *testing.T, r *rig) string {
	t.Helper()
	var mark string
	if err := r.life(func(*Inlet) {
		saved, _, err := r.store.Mark("s")
		if err != nil {
			t.Error(err)
		}
		mark = string(saved)
	}); err != nil {
		t.Fatal(err)
	}
	return mark
}
