package pipeline

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// without leaves out the objects of the name, and all fields of the others.
func without(name string) func(*change.Record) *change.Record {
	return func(rec *change.Record) *change.Record {
		if !rec.Op.OfObject() {
			return rec
		}
		narrowed := *rec
		narrowed.Filtered, narrowed.Object = rec.Key.Name == name, []byte(`{"cut":1}`)
		return &narrowed
	}
}

// told are the values that a memory was given.
func (m *memory) told() func() string {
	var mu sync.Mutex
	var values []string
	m.fault = func(_ context.Context, batch []sink.Message) error {
		mu.Lock()
		defer mu.Unlock()
		for _, message := range batch {
			values = append(values, string(message.Value))
		}
		return nil
	}
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(values, "\n")
	}
}

// TestI9ASinkOfItsOwnRulesSeesLess than one beside it, under the same ids, and its position moves all the same.
func TestI9ASinkOfItsOwnRulesSeesLess(t *testing.T) {
	for policy, make := range map[string]func(string, sink.Sink, int) delivery.Sink{
		"block": func(name string, target sink.Sink, _ int) delivery.Sink { return sinkOf(name, target) },
		"spool": spooling, "coalesce": merging,
	} {
		t.Run(policy, func(t *testing.T) {
			all, less := &memory{}, &memory{}
			values := less.told()
			narrowed := make("less", less, 4)
			narrowed.Narrow = without("b")
			r := newRig(t, sinkOf("all", all), narrowed)
			if err := r.life(func(line *Inlet) {
				r.push(line, update(pods(), "a", 1), update(pods(), "b", 2), update(pods(), "c", 3), update(pods(), "b", 4))
				r.drain(line, pods())
				r.await("the position", func() bool { return r.position(pods()) == "4" })
				own := update(pods(), "b", 4)
				own.Op, own.Sink = change.Sync, "less" // of its snapshot
				other := update(pods(), "c", 3)
				other.Op, other.Sink = change.Sync, "less"
				r.push(line, own, other)
				r.drain(line, pods())
			}); err != nil {
				t.Fatal(err)
			}
			if got := all.short(); got != "a/1/updated b/2/updated c/3/updated b/4/updated" {
				t.Errorf("the other sink has %s", got)
			}
			if got := less.short(); got != "a/1/updated c/3/updated c/3/sync" || strings.Contains(values(), `"v":`) || !strings.Contains(values(), `"cut":1`) {
				t.Errorf("the sink has %s\n%s", got, values())
			}
		})
	}
}

// TestI9TheRulesOfASinkAreThoseOfToday for what waited for it on disk, and for what its log holds already.
func TestI9TheRulesOfASinkAreThoseOfToday(t *testing.T) {
	target := &memory{}
	s := spooling("s", target, 4)
	s.Narrow = without("nobody")
	r := newRig(t, s)
	release := target.hang()
	if err := r.life(func(line *Inlet) {
		for i := 1; i <= 20; i += 2 {
			r.push(line, update(pods(), "a", i), update(pods(), "b", i+1))
		}
		r.drain(line, pods()) // to disk: the sink takes nothing
	}); err != nil {
		t.Fatal(err)
	}
	release()
	values := target.told()
	r.config.Sinks[0].Narrow = without("b")
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 21))
		r.await("the last", func() bool { return strings.HasSuffix(target.short(), "a/21/updated") })
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	if got := target.short(); strings.Contains(got, "b/") || strings.Count(got, "a/") != 11 || strings.Contains(values(), `"v":`) {
		t.Errorf("the sink has %s\n%s", got, values())
	}
	r.config.Sinks[0].Narrow = nil
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "b", 22))
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	if got := target.short(); !strings.HasSuffix(got, "a/21/updated b/22/updated") || strings.Count(got, "a/") != 11 {
		t.Errorf("after the rules went the sink has %s", got)
	}
}

// TestI9ADeadLetterHasWhatTheSinkMaySee, and no more.
func TestI9ADeadLetterHasWhatTheSinkMaySee(t *testing.T) {
	p := newPost(t)
	p.config.Sinks[0].Narrow = func(rec *change.Record) *change.Record {
		narrowed := *rec
		narrowed.Object = []byte(strings.ReplaceAll(string(rec.Object), "s3cr3t", "hash"))
		return &narrowed
	}
	p.live(func(line *Inlet) {
		huge, withheld := large("huge", 2), update(pods(), "withheld", 3)
		huge.Object = []byte(strings.Replace(string(huge.Object), "{", `{"p":"s3cr3t",`, 1))
		withheld.Object, withheld.Withheld = []byte(`{"p":"s3cr3t"}`), "filter"
		p.push(line, huge)
		p.drain(line, pods())
		p.push(line, withheld)
		p.drain(line, pods())
	})
	p.expect("huge/2/gap withheld/3/gap", "huge/2/too_large withheld/3/filter")
	for head, err := range p.letters.All() {
		if err != nil {
			t.Fatal(err)
		}
		l, err := p.letters.Get(head.ID)
		if err != nil || strings.Contains(string(l.Object)+string(l.Value), "s3cr3t") || !strings.Contains(string(l.Object), `"p":"hash"`) {
			t.Errorf("letter %s: %.100s, %v", head.ID, l.Object, err)
		}
	}
}
