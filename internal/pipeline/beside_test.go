package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// besides is a rig whose sinks take actors, which are pushed by hand.
func besides(t *testing.T, sinks ...delivery.Sink) *rig {
	for i := range sinks {
		sinks[i].Actors = true
	}
	r := newRig(t, sinks...)
	r.config.Beside = &Beside{Stream: change.Actors(), Run: func(ctx context.Context, _ *Inlet) error { <-ctx.Done(); return nil }}
	return r
}

// actor is one of an object for a sink.
func actor(name, sinkName string) *change.Record {
	stream := change.Actors()
	return &change.Record{
		Stream: &stream, Op: change.Actor, Key: change.Key{Namespace: "n", Name: name}, UID: "hash-of-" + name, ResourceVersion: "7",
		Object: []byte(`{"data":{}}`), Sink: sinkName, Received: time.Now(),
	}
}

// actors are the names of the objects whose actors the log has.
func (m *memory) actors() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for _, text := range m.log {
		if id, err := change.ParseAnyID(text); err == nil && id.Op == change.Actor {
			names = append(names, id.Key.Name)
		}
	}
	return strings.Join(names, " ")
}

// I1: what is pushed beside the sources counts as taken when it is in its sink, or on disk for it; from there the next
// life delivers it, once.
func TestI1ActorsWaitOnDiskForASinkThatSpools(t *testing.T) {
	slow, fast := &memory{}, &memory{}
	r := besides(t, spooling("slow", slow, 4), sinkOf("fast", fast))
	slow.hang()
	var want []string
	if err := r.life(func(line *Inlet) {
		for i := range 20 {
			name := fmt.Sprint("a", i)
			want = append(want, name)
			r.push(line, actor(name, "slow"), actor(name, "fast"))
		}
		r.drain(line, change.Actors())
		if got := fast.actors(); got != strings.Join(want, " ") {
			t.Errorf("drained, and the log has %q", got)
		}
	}); err != nil {
		t.Fatal(err)
	}
	slow.fault = nil
	for range 2 { // and not once more in the life after that
		if err := r.life(func(line *Inlet) {
			r.await("the actors", func() bool { return slow.actors() == strings.Join(want, " ") })
			streams, err := r.store.Streams()
			if err != nil || len(streams) > 0 {
				t.Errorf("the state knows the streams %q, %v", streams, err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// A sink that is let go misses actors, and holds up nobody's. When it is back it is given those that come then.
func TestI1I4ASinkThatIsLetGoMissesActors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault, mended := broken("the password is wrong")
		bad, good := &memory{fault: fault}, &memory{}
		s := sinkOf("bad", bad)
		s.Queue = fifo.Limit{Bytes: 1 << 20, Records: 2}
		r := besides(t, s, sinkOf("good", good))
		if err := r.life(func(line *Inlet) {
			for i := range 6 {
				name := fmt.Sprint("a", i)
				r.push(line, actor(name, "bad"), actor(name, "good"))
			}
			r.drain(line, change.Actors())
			if good.actors() != "a0 a1 a2 a3 a4 a5" || bad.actors() != "" {
				t.Errorf("the logs have %q and %q", good.actors(), bad.actors())
			}
			mended.Store(true)
			for i := range 24 * 60 {
				r.push(line, actor(fmt.Sprint("b", i), "bad"))
				r.drain(line, change.Actors())
				if bad.actors() != "" {
					break
				}
				time.Sleep(time.Minute)
			}
			if got := bad.actors(); !strings.HasPrefix(got, "b") {
				t.Errorf("the log has %q", got)
			}
		}); err != nil {
			t.Error(err)
		}
	})
}

// I3: of a batch that failed after a part of it, that part is not written again.
func TestI3ActorsOfABatchThatFailedAreWrittenOnce(t *testing.T) {
	target, failed := &memory{}, false
	target.fault = func(_ context.Context, batch []sink.Message) error {
		if failed {
			return nil
		}
		failed = true
		target.append(batch[:1]) // before the connection broke
		return errors.New("connection broken")
	}
	r := besides(t, sinkOf("s", target))
	if err := r.life(func(line *Inlet) {
		r.push(line, actor("a", "s"), actor("b", "s"), actor("c", "s"))
		r.drain(line, change.Actors())
	}); err != nil {
		t.Fatal(err)
	}
	if got := target.actors(); got != "a b c" {
		t.Errorf("the log has %q", got)
	}
}
