package pipeline

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/sink"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var configmaps = change.Stream{Resource: change.Resource{Version: "v1", Name: "configmaps", Kind: "ConfigMap"}}

// indebted is a run with one sink, bus, that owes it snapshots of configmaps, and that has asked for them.
func indebted(t *testing.T, limits ...change.Limits) *run {
	t.Helper()
	store, err := checkpoint.Open(t.Context(), t.TempDir(), checkpoint.Options{Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &run{
		Config: &Config{Store: store}, held: map[string]bool{}, owing: owing{wake: sink.NewBell()},
		sources: []Source{{
			Stream: configmaps,
			Ask:    func([]*listener.Intake, change.Reason, change.Limits) {},
			Run:    func(context.Context, []*listener.Intake) bool { return false },
		}},
	}
	config := listener.Config{
		Store: store, Observer: listener.NopObserver(), Work: func(bool) {}, Stops: listener.NewStops(1), Serve: r.serve,
		Streams: r.streams,
	}
	bus, err := listener.New(0, &listener.Sink{Name: "bus", Target: empty{}}, &config, listener.NewBooks(store, config.Observer, nil))
	must(t, err)
	r.listeners = append(r.listeners, bus)
	for _, l := range limits {
		r.owe(t, l)
	}
	return r
}

// empty is a sink whose log stays empty.
type empty struct{}

func (empty) Open(context.Context, sink.Opening) error                 { return nil }
func (empty) Write(context.Context, []sink.Message) (sink.Mark, error) { return "0", nil }
func (empty) Close(context.Context) error                              { return nil }

func (r *run) owe(t *testing.T, limits change.Limits) {
	t.Helper()
	must(t, r.request(&Request{Sink: "bus", Parts: []Part{{Limits: limits}}}))
	must(t, r.askOwed())
}

// owes is what is owed now, in words.
func (r *run) owes(t *testing.T) (all []string) {
	t.Helper()
	pending, err := r.Store.PendingSnapshots()
	must(t, err)
	for i := range pending {
		all = append(all, pending[i].Limits.String())
	}
	return all
}

// begun is the id of a comparison that begins now.
func (r *run) begun() string { return r.listeners[0].PartID("7") }

// TestI4ASnapshotIsOwedUntilOneThatWasBegunAfterwardsHasEnded: one that was under way has passed objects that were told
// before somebody asked.
func TestI4ASnapshotIsOwedUntilOneThatWasBegunAfterwardsHasEnded(t *testing.T) {
	r := indebted(t)
	end := checkpoint.Item{
		Kind: checkpoint.End, Resource: "configmaps", Scope: checkpoint.Others, Selection: new(string), Key: change.Key{Name: "a"},
		Comparison: checkpoint.Comparison{ID: r.begun(), Full: true},
	}
	r.owe(t, change.Limits{Name: "a"})
	if r.pay(&listener.Completed{Sink: "bus", End: end}); len(r.owes(t)) != 1 {
		t.Error("it is paid by one that was begun before")
	}
	end.Comparison.ID = r.begun()
	if r.pay(&listener.Completed{Sink: "lake", End: end}); len(r.owes(t)) != 1 {
		t.Error("it is paid by one of another sink")
	}
	if r.pay(&listener.Completed{Sink: "bus", End: end}); len(r.owes(t)) != 0 {
		t.Error("it is owed for ever")
	}
}

// TestI4ASinkThatIsOpenIsAskedOnceForWhatItIsOwed, before it is given the stream: what it was asked for before is not
// under way.
func TestI4ASinkThatIsOpenIsAskedOnceForWhatItIsOwed(t *testing.T) {
	r := indebted(t)
	var calls []string
	source := &r.sources[0]
	source.Ask = func(_ []*listener.Intake, _ change.Reason, limits change.Limits) {
		calls = append(calls, "ask for "+limits.Name)
	}
	source.Join = func(*listener.Intake) { calls = append(calls, "join") }
	r.owe(t, change.Limits{Name: "a"})
	r.listeners[0].Finish()
	must(t, r.listeners[0].Run(t.Context(), t.Context()))
	must(t, r.askOwed())
	if want := []string{"ask for a", "ask for a", "join"}; !slices.Equal(calls, want) {
		t.Errorf("the stream is told %q, want %q", calls, want)
	}
}

// TestI4ASnapshotIsPaidByOneOfAllThatItIsOf, and by no other one.
func TestI4ASnapshotIsPaidByOneOfAllThatItIsOf(t *testing.T) {
	shop := change.Limits{Namespace: "shop"}
	a, b := change.Limits{Name: "a"}, change.Limits{Namespace: "shop", Selector: "app=db"}
	part := func(l change.Limits) checkpoint.Item {
		return checkpoint.Item{Scope: checkpoint.Others, Key: change.Key{Namespace: l.Namespace, Name: l.Name}, Selection: &l.Selector}
	}
	for name, c := range map[string]struct {
		owed change.Limits
		end  checkpoint.Item
		pays bool
	}{
		"all by all":                         {change.Limits{}, checkpoint.Item{Scope: checkpoint.Others}, true},
		"all by a namespace":                 {change.Limits{}, checkpoint.Item{Scope: "shop"}, false},
		"a namespace by all":                 {shop, checkpoint.Item{Scope: checkpoint.Others}, true},
		"a namespace by itself":              {shop, checkpoint.Item{Scope: "shop"}, true},
		"a namespace by another one":         {shop, checkpoint.Item{Scope: "attic"}, false},
		"chosen objects by themselves":       {a, part(a), true},
		"chosen objects by other ones":       {a, part(b), false},
		"all by chosen objects":              {change.Limits{}, part(a), false},
		"selected objects by all":            {b, checkpoint.Item{Scope: checkpoint.Others}, false},
		"selected objects by themselves":     {b, part(b), true},
		"a namespace by some of its objects": {shop, part(b), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := indebted(t, c.owed)
			c.end.Kind, c.end.Resource = checkpoint.End, "configmaps"
			c.end.Comparison = checkpoint.Comparison{ID: r.begun(), Full: true}
			if c.end.Selection == nil {
				c.end.Comparison.ID = c.end.Comparison.ID[:len(c.end.Comparison.ID)-len(checkpoint.PartSuffix)] + checkpoint.FullSuffix
			}
			if r.pay(&listener.Completed{Sink: "bus", End: c.end}); (len(r.owes(t)) == 0) != c.pays {
				t.Errorf("owed afterwards: %q", r.owes(t))
			}
		})
	}
}

// TestI4WhatIsOwedOnceMoreIsAskedForOnceMore: asked for again before it was paid, and once more after that.
func TestI4WhatIsOwedOnceMoreIsAskedForOnceMore(t *testing.T) {
	r := indebted(t)
	asks := 0
	r.sources[0].Ask = func([]*listener.Intake, change.Reason, change.Limits) { asks++ }
	r.owe(t, change.Limits{})
	r.owe(t, change.Limits{})
	r.pay(&listener.Completed{Sink: "bus", End: checkpoint.Item{
		Kind: checkpoint.End, Resource: "configmaps", Scope: checkpoint.Others,
		Comparison: checkpoint.Comparison{ID: "9.9999999999999999.full", Full: true, Namespace: checkpoint.Others},
	}})
	if left := r.owes(t); len(left) != 0 {
		t.Errorf("owed are %v", left)
	}
	if r.owe(t, change.Limits{}); asks != 3 {
		t.Errorf("it was asked for %d times, want 3", asks)
	}
}

// TestI4ASnapshotOfANamespaceIsOwedThere: the stream of another namespace does not read it, and it is owed still when
// all namespaces are configured again.
func TestI4ASnapshotOfANamespaceIsOwedThere(t *testing.T) {
	of := change.Limits{Namespace: "a"}
	r := indebted(t, of)
	var asked []change.Limits
	r.sources[0].Ask = func(_ []*listener.Intake, _ change.Reason, limits change.Limits) { asked = append(asked, limits) }
	start := func(namespace string) { // as a new process
		r.owing.asked = nil
		r.sources[0].Stream.Namespace = namespace
		must(t, r.askOwed())
	}
	if start("d"); len(asked) != 0 || len(r.owes(t)) != 1 {
		t.Errorf("the stream of another namespace is asked for %v, and %v is owed", asked, r.owes(t))
	}
	if start(""); !slices.Equal(asked, []change.Limits{of}) {
		t.Errorf("the stream of all is asked for %v, want %v", asked, of)
	}
}

// must ends the test where there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
