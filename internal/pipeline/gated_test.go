package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// toyGate is a format that can encode the records of the streams that it was opened for.
type toyGate struct {
	mu      sync.Mutex
	open    map[string]bool
	changed chan struct{}
}

func newToyGate(open ...change.Stream) *toyGate {
	g := &toyGate{open: map[string]bool{}, changed: make(chan struct{})}
	for _, stream := range open {
		g.open[stream.String()] = true
	}
	return g
}

func (g *toyGate) Admits(stream *change.Stream) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open[stream.String()]
}

func (g *toyGate) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

// admit opens the gate for the stream, or shuts it.
func (g *toyGate) admit(stream change.Stream, open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open[stream.String()] = open
	close(g.changed)
	g.changed = make(chan struct{})
}

// gatedSink is a sink behind the gate.
func gatedSink(name string, target sink.Sink, gate *toyGate) delivery.Sink {
	s := sinkOf(name, target)
	s.Gate = gate
	s.Encoder = toyFormat{s.Encoder, func(_ context.Context, rec *change.Record) error {
		if !gate.Admits(rec.Stream) {
			return errors.New("the schema is not registered")
		}
		return nil
	}}
	return s
}

// awaitRequest waits until the streams were asked for the snapshots.
func (r *rig) awaitRequest(want string) {
	r.t.Helper()
	for range 600 {
		if r.requested() == want {
			return
		}
		time.Sleep(time.Second)
	}
	r.t.Errorf("asked for %q, want %q", r.requested(), want)
}

// added is the first record of an object.
func added(name string, version int) *change.Record {
	rec := update(pods(), name, version)
	rec.Op = change.Added
	return rec
}

// bothSinks is a rig with a sink after the gate and one that has none.
func bothSinks(t *testing.T, gate *toyGate) (r *rig, typed, plain *memory) {
	typed, plain = &memory{}, &memory{}
	return newRig(t, gatedSink("typed", typed, gate), sinkOf("plain", plain)), typed, plain
}

// spoolingGated is a rig like that, in which the sink after the gate spools.
func spoolingGated(t *testing.T, gate *toyGate) (r *rig, typed *memory) {
	typed = &memory{}
	slow := gatedSink("typed", typed, gate)
	slow.Queue.Bytes, slow.Queue.Records, slow.Spool = 16<<20, 2, 16<<20
	return newRig(t, slow, sinkOf("plain", &memory{})), typed
}

// TestI4AFormatThatIsNotReadyHoldsUpItsStreamAlone: the sink's other streams go on at once, and the stream's other
// sinks after a while. When the format is ready the sink is told of the gap, and what is gone that it had.
func TestI4AFormatThatIsNotReadyHoldsUpItsStreamAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := newToyGate(pods(), services())
		r, typed, plain := bothSinks(t, gate)
		var missed []string
		r.config.Observer.Missed = func(name string, stream change.Stream) { r.note(&missed, name+" "+stream.String()) }
		r.live(r.config.Sinks, func(line *Inlet) {
			r.push(line, added("a", 5), added("b", 6))
			r.drain(line, pods())
			gate.admit(pods(), false)
			began := time.Now()
			other := update(services(), "x", 7)
			r.push(line, other)
			r.drain(line, services())
			if waited := time.Since(began); waited > time.Second || !strings.HasSuffix(typed.short(), "x/7/updated") {
				t.Errorf("another stream of the sink waits %s: %s", waited, typed.short())
			}
			r.push(line, went("a", 8), added("short", 9), went("short", 10))
			r.drain(line, pods())
			if waited := time.Since(began); waited < 29*time.Second || waited > 35*time.Second {
				t.Errorf("the other sink waits %s", waited)
			}
			if fmt.Sprint(missed) != "[typed pods]" || r.position(pods()) != "10" || r.requested() != "" {
				t.Errorf("missed are %q, position %s, asked for %q", missed, r.position(pods()), r.requested())
			}
			gate.admit(pods(), true)
			r.awaitRequest("pods absent typed")
			r.comeback(line, "typed")
			r.push(line, update(pods(), "b", 91))
			r.drain(line, pods())
		})
		if want := "a/5/added b/6/added x/7/updated a/8/deleted short/9/added short/10/deleted b/91/updated"; plain.short() != want {
			t.Errorf("the other sink has %s, want %s", plain.short(), want)
		}
		if want := "a/5/added b/6/added x/7/updated /90/gap /90/snapshot.begin a/5/deleted /90/snapshot.end b/91/updated"; typed.short() != want {
			t.Errorf("the sink has %s, want %s", typed.short(), want)
		}
	})
}

// TestI6ARecordThatWaitsForAFormatTakesNoRoomInOtherQueues: another stream needs the last place there.
func TestI6ARecordThatWaitsForAFormatTakesNoRoomInOtherQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := newToyGate(services())
		typed, plain := &memory{}, &memory{}
		narrow := sinkOf("plain", plain)
		narrow.Queue.Records = 1
		r := newRig(t, narrow, gatedSink("typed", typed, gate))
		r.live(r.config.Sinks, func(line *Inlet) {
			pushed := make(chan error)
			go func() { pushed <- line.Push(t.Context(), added("a", 5)) }()
			synctest.Wait()
			began := time.Now()
			r.push(line, update(services(), "x", 7))
			r.drain(line, services())
			if waited := time.Since(began); waited > time.Second {
				t.Errorf("another stream waits %s", waited)
			}
			gate.admit(pods(), true)
			if err := <-pushed; err != nil {
				t.Error(err)
			}
			r.drain(line, pods())
		})
		if want := "x/7/updated a/5/added"; typed.short() != want || plain.short() != want {
			t.Errorf("the sinks have %s and %s, want %s", typed.short(), plain.short(), want)
		}
	})
}

// TestI4AFormatThatIsReadySoonMissesNothing: a gap costs more than the wait.
func TestI4AFormatThatIsReadySoonMissesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := newToyGate()
		r, typed, plain := bothSinks(t, gate)
		r.live(r.config.Sinks, func(line *Inlet) {
			go func() {
				time.Sleep(20 * time.Second)
				gate.admit(pods(), true)
			}()
			r.push(line, added("a", 5))
			r.drain(line, pods())
		})
		if typed.short() != "a/5/added" || plain.short() != "a/5/added" || r.requested() != "" {
			t.Errorf("the sinks have %s and %s, asked for %q", typed.short(), plain.short(), r.requested())
		}
	})
}

// TestI4AStreamWaitsWhereNobodyGainsByAGap: all its sinks wait for formats.
func TestI4AStreamWaitsWhereNobodyGainsByAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, another := newToyGate(), newToyGate()
		typed, too := &memory{}, &memory{}
		r := newRig(t, gatedSink("typed", typed, gate), gatedSink("too", too, another))
		r.live(r.config.Sinks, func(line *Inlet) {
			go func() {
				time.Sleep(4 * time.Minute)
				gate.admit(pods(), true)
				another.admit(pods(), true)
			}()
			r.push(line, added("a", 5))
			r.drain(line, pods())
		})
		if typed.short() != "a/5/added" || too.short() != "a/5/added" {
			t.Errorf("the sinks have %s and %s", typed.short(), too.short())
		}
	})
}

// TestI4FormatsAreWaitedForTogether: the waits for several sinks do not add up. A wait that nobody gained by counts for
// none of them: they may have one registry, which their formats hear of one after the other.
func TestI4FormatsAreWaitedForTogether(t *testing.T) {
	for _, each := range []struct {
		what   string
		ready  [3]time.Duration // when the formats are
		after  time.Duration    // so the record goes in line
		missed string
	}{
		{"one sink has none", [3]time.Duration{0, time.Hour, time.Hour}, 30 * time.Second, "[b pods c pods]"},
		{"all wait, and one of them not for long", [3]time.Duration{4 * time.Minute, 4*time.Minute + 20*time.Second, time.Hour},
			4*time.Minute + 30*time.Second, "[c pods]"},
		{"all wait, and the others not for long", [3]time.Duration{4 * time.Minute, 4*time.Minute + 10*time.Second, 4*time.Minute + 20*time.Second},
			4*time.Minute + 20*time.Second, "[]"},
	} {
		t.Run(each.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gates := []*toyGate{newToyGate(), newToyGate(), newToyGate()}
				r := newRig(t, gatedSink("a", &memory{}, gates[0]), gatedSink("b", &memory{}, gates[1]), gatedSink("c", &memory{}, gates[2]))
				var missed []string
				r.config.Observer.Missed = func(name string, stream change.Stream) { r.note(&missed, name+" "+stream.String()) }
				for i, gate := range gates {
					time.AfterFunc(each.ready[i], func() { gate.admit(pods(), true) })
				}
				r.live(r.config.Sinks, func(line *Inlet) {
					began := time.Now()
					r.push(line, added("a", 5))
					if took := time.Since(began); took < each.after || took > each.after+3*time.Second {
						t.Errorf("the record goes in line after %s, want %s", took, each.after)
					}
					r.drain(line, pods())
				})
				if fmt.Sprint(missed) != each.missed {
					t.Errorf("missed are %q, want %s", missed, each.missed)
				}
			})
		})
	}
}

// TestI4ASinkThatReturnsIsNotHeldUpByAnothersFormat: it is asked about the stream when what waits is in line, and gains
// by a gap of the other one.
func TestI4ASinkThatReturnsIsNotHeldUpByAnothersFormat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := newToyGate()
		r, typed, plain := bothSinks(t, gate)
		both := r.config.Sinks
		gate.admit(pods(), true)
		r.live(both, func(line *Inlet) { r.push(line, added("a", 5)); r.drain(line, pods()) })
		r.live(both[:1], func(line *Inlet) { r.push(line, added("b", 6)); r.drain(line, pods()) })
		gate.admit(pods(), false)
		r.live(both, func(line *Inlet) {
			r.awaitRequest("pods absent plain, services absent plain")
			time.AfterFunc(time.Hour, func() { gate.admit(pods(), true) })
			began := time.Now()
			r.push(line, went("a", 7)) // the snapshot waits for its turn
			r.drain(line, pods())
			if waited := time.Since(began); waited < 29*time.Second || waited > 35*time.Second {
				t.Errorf("what returns waits %s", waited)
			}
			r.comeback(line, "plain")
		})
		if want := "a/5/added /90/gap /90/snapshot.begin a/5/deleted /90/snapshot.end"; plain.short() != want {
			t.Errorf("the sink that returns has %s, want %s", plain.short(), want)
		}
		if want := "a/5/added b/6/added"; typed.short() != want {
			t.Errorf("the sink without a schema has %s, want %s", typed.short(), want)
		}
	})
}

// TestI4WhatASinkMissesForItsFormatIsKnownAfterARestart, and is asked for when the format is ready.
func TestI4WhatASinkMissesForItsFormatIsKnownAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := newToyGate()
		r, typed, _ := bothSinks(t, gate)
		r.live(r.config.Sinks, func(line *Inlet) { r.push(line, added("a", 5)); r.drain(line, pods()) })
		r.live(r.config.Sinks, func(line *Inlet) {
			began := time.Now()
			r.push(line, update(pods(), "a", 6))
			r.drain(line, pods())
			if waited := time.Since(began); waited > time.Second || r.requested() != "" {
				t.Errorf("the other sink waits %s; asked for %q", waited, r.requested())
			}
			gate.admit(pods(), true)
			r.awaitRequest("pods absent typed")
			r.comeback(line, "typed")
			r.push(line, update(pods(), "a", 91))
			r.drain(line, pods())
		})
		if want := "/90/gap /90/snapshot.begin /90/snapshot.end a/91/updated"; typed.short() != want {
			t.Errorf("the sink has %s, want %s", typed.short(), want)
		}
	})
}

// TestI3I4ASinkThatMissesAStreamIsToldOnceWhatItsLogAloneHas: a crash kept from being saved what the log holds, and it
// comes again while the format is not ready. A delete of it is not told again, and what goes later is.
func TestI3I4ASinkThatMissesAStreamIsToldOnceWhatItsLogAloneHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := newToyGate(pods())
		r, typed, _ := bothSinks(t, gate)
		r.live(r.config.Sinks, func(line *Inlet) { r.push(line, added("a", 5)); r.drain(line, pods()) })
		for _, rec := range []*change.Record{added("b", 6), went("a", 7)} {
			typed.log = append(typed.log, idOf(rec))
		}
		gate.admit(pods(), false)
		r.live(r.config.Sinks, func(line *Inlet) {
			r.push(line, added("b", 6), went("a", 7), went("b", 8))
			r.drain(line, pods())
			gate.admit(pods(), true)
			r.awaitRequest("pods absent typed")
			r.comeback(line, "typed")
		})
		if want := "a/5/added b/6/added a/7/deleted /90/gap /90/snapshot.begin b/6/deleted /90/snapshot.end"; typed.short() != want {
			t.Errorf("the sink has %s, want %s", typed.short(), want)
		}
	})
}

// TestI4AFormatThatIsLostWhileItsSinkReturnsIsMissedAgain: the gap that announces the return is not queued then.
func TestI4AFormatThatIsLostWhileItsSinkReturnsIsMissedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := newToyGate()
		r, typed, plain := bothSinks(t, gate)
		r.live(r.config.Sinks, func(line *Inlet) {
			r.push(line, added("a", 5))
			r.drain(line, pods())
			gate.admit(pods(), true)
			r.awaitRequest("pods absent typed")
			gate.admit(pods(), false)
			gap := found(update(pods(), "", 90), change.Gap, change.Absent, "90")
			gap.Sink, gap.Key, gap.UID, gap.Snapshot.Generation = "typed", change.Key{}, "", r.generation("typed", pods())
			r.push(line, gap, update(pods(), "a", 91))
			r.drain(line, pods())
			if plain.short() != "a/5/added a/91/updated" || typed.short() != "" {
				t.Errorf("the sinks have %s and %s", plain.short(), typed.short())
			}
			gate.admit(pods(), true)
			r.awaitRequest("pods absent typed, pods absent typed")
			r.comeback(line, "typed")
		})
		if want := "/90/gap /90/snapshot.begin /90/snapshot.end"; typed.short() != want {
			t.Errorf("the sink has %s, want %s", typed.short(), want)
		}
	})
}

// TestI3WhatASinkMissesIsToldBehindWhatItHasOnDisk: the name of the object that is gone had belonged to another one
// before, whose records the sink is still to take when its format is ready again.
func TestI3WhatASinkMissesIsToldBehindWhatItHasOnDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := newToyGate(pods(), services())
		r, typed := spoolingGated(t, gate)
		before, gone := added("b", 6), went("b", 7)
		before.UID, gone.UID = "older", "older"
		r.live(r.config.Sinks, func(line *Inlet) {
			release := typed.hang()
			defer release()
			r.push(line, wholeBatch(), before, gone, added("b", 8))
			r.drain(line, pods(), services())
			gate.admit(pods(), false)
			r.push(line, went("b", 9))
			r.drain(line, pods())
			gate.admit(pods(), true)
			r.awaitRequest("pods absent typed")
			r.drain(line, pods()) // what it has missed is known then
			release()
			r.await("what is on disk", func() bool { return strings.HasSuffix(typed.short(), "b/8/added") })
			r.comeback(line, "typed")
			r.awaitEnd(typed)
		})
		if want := "x/3/updated b/6/added b/7/deleted b/8/added /90/gap /90/snapshot.begin b/8/deleted /90/snapshot.end"; typed.short() != want {
			t.Errorf("the sink has %s, want %s", typed.short(), want)
		}
	})
}

// TestI3I4ASinkThatMissesAStreamBeforeItsLogIsReadIsToldWhatTheLogHas: a crash kept what the log holds
// from being saved. The sink is not open when the others have waited for its format.
func TestI3I4ASinkThatMissesAStreamBeforeItsLogIsReadIsToldWhatTheLogHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := newToyGate(pods())
		r, typed, _ := bothSinks(t, gate)
		r.live(r.config.Sinks, func(line *Inlet) { r.push(line, added("a", 5)); r.drain(line, pods()) })
		target := &late{may: make(chan struct{})}
		target.log = append(typed.log, idOf(added("b", 6)))
		r.config.Sinks[0].Target, r.config.OpenGrace = target, time.Millisecond
		gate.admit(pods(), false)
		r.live(r.config.Sinks, func(line *Inlet) {
			r.push(line, added("b", 6), went("b", 8))
			r.drain(line, pods())
			close(target.may)
			r.await("the open sink", func() bool { return line.listeners[0].IsJoined() })
			gate.admit(pods(), true)
			r.awaitRequest("pods absent typed")
			r.comeback(line, "typed")
		})
		if want := "a/5/added b/6/added /90/gap /90/snapshot.begin b/6/deleted /90/snapshot.end"; target.short() != want {
			t.Errorf("the sink has %s, want %s", target.short(), want)
		}
	})
}

// TestI3ADeleteThatIsOnDiskWhenItsStreamIsMissedIsToldOnce: a crash kept from being saved that the log has the object,
// and its delete waits on disk.
func TestI3ADeleteThatIsOnDiskWhenItsStreamIsMissedIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := newToyGate(pods(), services())
		r, typed := spoolingGated(t, gate)
		r.live(r.config.Sinks, func(line *Inlet) { r.push(line, added("a", 5)); r.drain(line, pods()) })
		typed.log = append(typed.log, idOf(added("b", 6)))
		r.live(r.config.Sinks, func(line *Inlet) {
			release := typed.hang()
			defer release()
			r.push(line, wholeBatch(), added("b", 6), went("b", 8))
			r.drain(line, pods(), services())
			gate.admit(pods(), false)
			r.push(line, added("c", 9))
			r.drain(line, pods())
			gate.admit(pods(), true)
			r.awaitRequest("pods absent typed")
			release()
			r.await("what is on disk", func() bool { return strings.HasSuffix(typed.short(), "b/8/deleted") })
			r.comeback(line, "typed")
			r.awaitEnd(typed)
		})
		if want := "a/5/added b/6/added x/3/updated b/8/deleted /90/gap /90/snapshot.begin /90/snapshot.end"; typed.short() != want {
			t.Errorf("the sink has %s, want %s", typed.short(), want)
		}
	})
}
