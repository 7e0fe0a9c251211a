package pipeline

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// retirement is what a stream that is over tells last: a delete that no watch saw.
func retirement(name string, version int) *change.Record {
	rec := update(widgets(), name, version)
	rec.Op, rec.Object, rec.FinalStateUnknown = change.Deleted, nil, true
	return rec
}

// departed is a rig in whose only life so far a stream came, and left while all that it told was on disk: its sink
// takes nothing yet. What follows in the same life is up to then.
func departed(t *testing.T, target *memory, then func(r *rig, line *Inlet)) *rig {
	t.Helper()
	r := newRig(t, spooling("s", target, 4))
	sets, left := r.follow()
	if err := r.life(func(line *Inlet) {
		g := newGuest(r)
		if err := (<-sets).Join(g.source()); err != nil {
			t.Fatal(err)
		}
		<-g.began
		for i := 1; i <= 10; i++ {
			r.push(line, update(pods(), "a", i))
		}
		r.push(line, update(widgets(), "w", 11), retirement("w", 11))
		r.drain(line, pods(), widgets())
		close(g.end)
		<-left
		if target.short() != "" {
			t.Errorf("the sink took %s before the stream left", target.short())
		}
		r.forgotten(widgets())
		then(r, line)
	}); err != nil {
		t.Fatal(err)
	}
	r.config.Follow = nil
	return r
}

// TestI4WhatAStreamToldBeforeItLeftIsGivenFromDisk to a sink that was away meanwhile: in the same life, in the next
// one, and once where the process dies after the write.
func TestI4WhatAStreamToldBeforeItLeftIsGivenFromDisk(t *testing.T) {
	t.Run("same life", func(t *testing.T) {
		target := &memory{}
		release := target.hang()
		departed(t, target, func(r *rig, _ *Inlet) {
			release()
			r.await("the rest", func() bool {
				return strings.Contains(target.short(), "w/11/deleted") && strings.Contains(target.short(), "a/10/updated")
			})
		})
		expectLog(t, target, numbers(1, 10))
	})
	t.Run("next life", func(t *testing.T) {
		target := &memory{}
		target.hang()
		r := departed(t, target, func(*rig, *Inlet) {})
		target.fault = nil
		r.givesTheRest(target)
	})
	t.Run("the process dies behind the write", func(t *testing.T) {
		target := &memory{}
		target.hang()
		r := departed(t, target, func(*rig, *Inlet) {})
		target.fault = func(_ context.Context, batch []sink.Message) error {
			target.append(batch)
			return &sink.PermanentError{Err: errors.New("killed")}
		}
		if err := r.life(func(*Inlet) { r.await("a write", func() bool { return target.short() != "" }) }); err == nil {
			t.Fatal("the life did not die")
		}
		target.fault = nil
		r.givesTheRest(target)
	})
}

// givesTheRest is a life at whose end the sink has everything, and one more record that is pushed.
func (r *rig) givesTheRest(target *memory) {
	r.t.Helper()
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 12))
		r.await("the last", func() bool { return strings.HasSuffix(target.short(), "a/12/updated") })
	}); err != nil {
		r.t.Fatal(err)
	}
	expectLog(r.t, target, numbers(1, 10)+" a/12/updated")
}

// expectLog wants these records of the pods, and what the stream told that left; there is no order between streams.
func expectLog(t *testing.T, target *memory, ofPods string) {
	t.Helper()
	streams := map[byte][]string{}
	for _, id := range strings.Fields(target.short()) {
		streams[id[0]] = append(streams[id[0]], id)
	}
	if got := strings.Join(streams['a'], " "); got != ofPods {
		t.Errorf("of the pods the log has %s, want %s", got, ofPods)
	}
	if got, want := strings.Join(streams['w'], " "), "w/11/updated w/11/deleted"; got != want {
		t.Errorf("of the stream that left the log has %q, want %q", got, want)
	}
}
