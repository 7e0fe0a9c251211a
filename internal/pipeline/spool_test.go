package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// hang makes the sink wait in Write until the returned function is called, or its context ends.
func (m *memory) hang() (release func()) {
	open := make(chan struct{})
	m.fault = func(ctx context.Context, _ []sink.Message) error {
		select {
		case <-open:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return sync.OnceFunc(func() { close(open) })
}

func spooling(name string, target sink.Sink, records int) delivery.Sink {
	s := sinkOf(name, target)
	s.Queue, s.Spool = fifo.Limit{Bytes: 1 << 20, Records: records}, 1<<20
	return s
}

// numbers are the versions from first to last of one pod, as in a log.
func numbers(first, last int) string {
	var all []string
	for i := first; i <= last; i++ {
		all = append(all, fmt.Sprintf("a/%d/updated", i))
	}
	return strings.Join(all, " ")
}

func TestI1PositionMovesOnWhileASinkThatSpoolsHangs(t *testing.T) {
	slow, fast := &memory{}, &memory{}
	r := newRig(t, spooling("slow", slow, 4), sinkOf("fast", fast))
	slow.hang()
	if err := r.life(func(line *Inlet) {
		for i := 1; i <= 40; i++ {
			r.push(line, update(pods(), "a", i))
		}
		r.drain(line, pods()) // to disk: the sink takes nothing
		if r.position(pods()) != "40" {
			t.Errorf("the position is %s, want 40", r.position(pods()))
		}
	}); err != nil {
		t.Fatal(err)
	}
	if fast.short() != numbers(1, 40) || slow.short() != "" {
		t.Fatalf("logs are %s and %s", fast.short(), slow.short())
	}
	slow.fault = nil
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 41))
		r.await("the last", func() bool { return strings.HasSuffix(slow.short(), "a/41/updated") })
	}); err != nil {
		t.Fatal(err)
	}
	if slow.short() != numbers(1, 41) {
		t.Errorf("the log is %s", slow.short())
	}
}

// The process dies after the write of what it read from disk: the state still holds it.
func TestI3WhatWasDrainedBeforeACrashIsNotWrittenAgain(t *testing.T) {
	target := &late{may: make(chan struct{})}
	r := newRig(t, spooling("s", target, 4))
	r.config.OpenGrace = time.Millisecond
	if err := r.life(func(line *Inlet) {
		for i := 1; i <= 20; i++ {
			r.push(line, update(pods(), "a", i))
		}
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	close(target.may)
	r.config.OpenGrace = time.Minute
	target.fault = func(_ context.Context, batch []sink.Message) error {
		target.append(batch)
		return &sink.PermanentError{Err: errors.New("killed")}
	}
	if err := r.life(func(*Inlet) { r.await("a write", func() bool { return target.short() != "" }) }); err == nil {
		t.Fatal("the life did not die")
	}
	target.fault = nil
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 21))
		r.await("the last", func() bool { return strings.HasSuffix(target.short(), "a/21/updated") })
	}); err != nil {
		t.Fatal(err)
	}
	if target.short() != numbers(1, 21) {
		t.Errorf("the log is %s", target.short())
	}
}

func TestCoalescingSinkHoldsUpNobody(t *testing.T) {
	slow, fast := &memory{}, &memory{}
	s := sinkOf("slow", slow)
	s.Coalesce, s.Queue.Records = true, 4
	r := newRig(t, s, sinkOf("fast", fast))
	merged := 0
	r.config.Observer.Coalesced = func(_ string, n int) { merged += n }
	release := slow.hang()
	if err := r.life(func(line *Inlet) {
		for i := 1; i <= 40; i++ {
			r.push(line, update(pods(), "a", i))
		}
		r.await("the other sink", func() bool { return fast.short() == numbers(1, 40) })
		release()
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	if got := slow.short(); !strings.HasSuffix(got, "a/40/updated") || strings.Count(got, "a/")+merged != 40 {
		t.Errorf("the log is %s, and %d records were merged", got, merged)
	}
}

// late is a sink that opens when it may.
type late struct {
	memory
	may chan struct{}
}

func (l *late) Open(ctx context.Context, at sink.Opening) error {
	select {
	case <-l.may:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return l.memory.Open(ctx, at)
}

func TestSinkThatIsNotOpenHoldsUpNobody(t *testing.T) {
	slow, fast := &late{may: make(chan struct{})}, &memory{}
	r := newRig(t, spooling("slow", slow, 4), sinkOf("fast", fast))
	r.config.OpenGrace = time.Millisecond
	if err := r.life(func(line *Inlet) {
		for i := 1; i <= 40; i++ {
			r.push(line, update(pods(), "a", i))
		}
		r.await("the other sink", func() bool { return fast.short() == numbers(1, 40) })
	}); err != nil {
		t.Fatalf("what is queued for a sink that never opened is on disk: %v", err)
	}
	close(slow.may)
	if err := r.life(func(line *Inlet) {
		r.await("the late sink", func() bool { return slow.short() == numbers(1, 40) })
		r.push(line, update(pods(), "a", 41))
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	if slow.short() != numbers(1, 41) {
		t.Errorf("the log is %s", slow.short())
	}
}

// await polls: what it waits for is told by no call.
func (r *rig) await(what string, reached func() bool) {
	r.t.Helper()
	for range 120_000 { // two minutes at least
		if reached() {
			return
		}
		<-time.After(time.Millisecond)
	}
	r.t.Errorf("%s did not come", what)
}

// Neither of two sinks that are away keeps the other's policy from working: what waits for the one that is not spooled
// for cannot go to disk for the other.
func TestI3ASinkThatSpoolsHoldsUpNobodyBesideOneThatDoesNot(t *testing.T) {
	for _, coalesces := range []bool{true, false} {
		t.Run(fmt.Sprintf("the other coalesces %t", coalesces), func(t *testing.T) {
			slow, other, fast := &memory{}, &memory{}, &memory{}
			second := sinkOf("other", other)
			second.Coalesce = coalesces
			r := newRig(t, spooling("slow", slow, 4), second, sinkOf("fast", fast))
			releaseSlow, releaseOther := slow.hang(), other.hang()
			if err := r.life(func(line *Inlet) {
				pushed := make(chan error, 1)
				go func() {
					var err error
					for i := 1; i <= 40 && err == nil; i++ {
						err = line.Push(t.Context(), update(pods(), "a", i))
					}
					pushed <- err
				}()
				r.await("the third sink", func() bool { return fast.short() == numbers(1, 40) })
				releaseOther()
				if err := <-pushed; err != nil {
					t.Error(err)
				}
				r.drain(line, pods()) // to disk
				releaseSlow()
				r.await("the first sink", func() bool { return slow.short() == numbers(1, 40) })
			}); err != nil {
				t.Fatal(err)
			}
			if slow.short() != numbers(1, 40) || !strings.HasSuffix(other.short(), "a/40/updated") {
				t.Errorf("the logs are %s and %s", slow.short(), other.short())
			}
		})
	}
}
