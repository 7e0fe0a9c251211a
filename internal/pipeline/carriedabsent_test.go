package pipeline

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// ahead is a rig of two sinks: the mark of lake carries ids, since stuck takes nothing while it is closed. What lake
// has and the state does not know: made, and gone with its delete.
type ahead struct {
	*rig
	lake, stuck *memory
	open        atomic.Bool // stuck takes what it is given
}

func newAhead(t *testing.T) *ahead {
	a := &ahead{lake: &memory{}, stuck: &memory{}}
	a.stuck.fault = func(ctx context.Context, _ []sink.Message) error {
		for !a.open.Load() {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Minute):
			}
		}
		return nil
	}
	a.rig = newRig(t, sinkOf("lake", a.lake), sinkOf("stuck", a.stuck))
	a.config.MarkLag, a.config.StopTimeout = 3, time.Second
	return a
}

func madeAt(name string, version int) *change.Record {
	rec := update(pods(), name, version)
	rec.Op = change.Added
	return rec
}

// news is what the watch tells after version 5.
func news() []*change.Record {
	all := []*change.Record{madeAt("made", 6), madeAt("gone", 7), went("gone", 8)}
	for v := 9; v < 20; v++ {
		all = append(all, update(pods(), "b", v))
	}
	return all
}

const newsTold = "a/5/updated made/6/added gone/7/added gone/8/deleted b/9/updated b/10/updated b/11/updated b/12/updated b/13/updated " +
	"b/14/updated b/15/updated b/16/updated b/17/updated b/18/updated b/19/updated"

// run brings a to both sinks, and the news to lake alone.
func (a *ahead) run(line *Inlet) {
	a.t.Helper()
	a.open.Store(true)
	a.push(line, update(pods(), "a", 5))
	a.drain(line, pods())
	a.open.Store(false)
	for _, rec := range news() {
		a.push(line, rec)
		synctest.Wait()
	}
	a.lake.eventually(a.t, newsTold)
}

// live runs a life that may leave something.
func (a *ahead) live(sinks []delivery.Sink, use func(*Inlet)) {
	a.t.Helper()
	a.config.Sinks = sinks
	var left *LeftError
	if err := a.life(use); err != nil && !errors.As(err, &left) {
		a.t.Fatal(err)
	}
}

// expectReturn wants lake to be told of the end of made, which only it had when it left, and of nothing that it knows.
func (a *ahead) expectReturn() {
	a.t.Helper()
	if told, found := strings.CutPrefix(a.lake.short(), newsTold+" /90/gap "); !found || strings.Count(told, "deleted") != 1 || !strings.Contains(told, "made/6/deleted") {
		a.t.Errorf("lake has %s", a.lake.short())
	}
	if last := a.lake.found[len(a.lake.found)-1]; last > 6 {
		a.t.Errorf("the log was opened %d records before its end", last)
	}
}

// A sink that is not configured for a while may have left with a mark that carries ids.
func TestI4WhatAMarkCarriesIsKnownWhenTheSinkReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAhead(t)
		both := a.config.Sinks
		a.live(both, a.run)
		a.live(both[1:], func(line *Inlet) {
			a.open.Store(true)
			a.push(line, news()...)
			a.push(line, went("made", 21))
			a.drain(line, pods())
		})
		a.live(both, func(line *Inlet) { a.comeback(line, "lake") })
		a.expectReturn()
	})
}

// The same in one process, for a sink that fails for good.
func TestI4WhatAMarkCarriesIsKnownWhenTheSinkIsMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAhead(t)
		a.config.Sinks[0].Queue = fifo.Limit{Bytes: 1 << 20, Records: 3}
		fault, mended := broken("the password is wrong")
		a.live(a.config.Sinks, func(line *Inlet) {
			a.run(line)
			a.lake.mu.Lock()
			a.lake.fault = fault
			a.lake.mu.Unlock()
			for v := range 10 {
				a.push(line, update(pods(), "b", 20+v))
			}
			a.open.Store(true)
			a.push(line, went("made", 31))
			a.drain(line, pods())
			mended.Store(true)
			for !strings.Contains(a.requested(), "pods absent lake") {
				time.Sleep(time.Minute)
			}
			a.comeback(line, "lake")
		})
		a.expectReturn()
	})
}

// A sink that is forgotten, and comes back under its name, is new: what it carried before is nothing that it has.
func TestI4WhatAForgottenSinkCarriedIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAhead(t)
		a.live(a.config.Sinks, a.run)
		store, err := checkpoint.Open(t.Context(), a.dir, checkpoint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		carried, err := store.Carried("lake")
		if err := errors.Join(err, store.Retain([]string{"stuck"}), store.Close()); err != nil || len(carried.IDs) == 0 {
			t.Fatalf("%v; the mark carries %q", err, carried.IDs)
		}
		a.live(a.config.Sinks, func(line *Inlet) {
			a.open.Store(true)
			a.push(line, news()...)
			a.drain(line, pods())
		})
		if want := newsTold + strings.TrimPrefix(newsTold, "a/5/updated"); a.lake.short() != want {
			t.Errorf("lake has %s", a.lake.short())
		}
	})
}

// Where a log has lost what lies before a mark that carries ids, what the log still holds is not written again, and all
// that is lost is.
func TestI4WhatALostMarkCarriedIsNotBelieved(t *testing.T) {
	for _, left := range []int{0, 2, 4} {
		synctest.Test(t, func(t *testing.T) {
			a := newAhead(t)
			a.live(a.config.Sinks, a.run)
			a.lake.log = a.lake.log[:left]
			var requests string
			for range 2 { // the second life believes nothing else
				a.live(a.config.Sinks, func(line *Inlet) {
					requests = a.requested()
					for _, rec := range news() {
						a.push(line, rec)
						synctest.Wait()
					}
				})
			}
			if !strings.Contains(requests, "pods lost lake") {
				t.Errorf("asked for %q", requests)
			}
			want := strings.Fields(newsTold)
			if left == 0 { // a is not told again but by the snapshot that is owed
				want = want[1:]
			}
			if got := a.lake.short(); got != strings.Join(want, " ") {
				t.Errorf("with %d records left lake has %s", left, got)
			}
		})
	}
}

// TestI3AMarkCarriesTheDeleteThatANoteStandsFor: a comparison that finds the object gone tells the sink nothing more
// than it was told before the crash.
func TestI3AMarkCarriesTheDeleteThatANoteStandsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAhead(t)
		a.lake.fault = func(_ context.Context, batch []sink.Message) error {
			if i := slices.IndexFunc(batch, func(m sink.Message) bool { return m.Op == "deleted" }); i >= 0 {
				return &sink.RejectedError{Index: i, Reason: "too_large", Err: errors.New("too large")}
			}
			return nil
		}
		a.live(a.config.Sinks, func(line *Inlet) {
			a.open.Store(true)
			a.push(line, madeAt("gone", 7))
			a.drain(line, pods())
			a.open.Store(false)
			for _, rec := range news()[2:] {
				a.push(line, rec)
				synctest.Wait()
			}
		})
		a.live(a.config.Sinks, func(line *Inlet) {
			a.open.Store(true)
			gone := found(update(pods(), "gone", 7), change.Deleted, change.Gone, "30")
			gone.FinalStateUnknown = true
			a.push(line, gone, found(update(pods(), "b", 19), change.Replaced, change.Gone, "30"))
			a.drain(line, pods())
		})
		if got := a.lake.short(); got != strings.NewReplacer("a/5/updated made/6/added ", "", "gone/8/deleted", "gone/8/gap").Replace(newsTold) {
			t.Errorf("lake has %s", got)
		}
		if got := a.stuck.short(); got != "gone/7/added gone/7/deleted b/19/replaced" {
			t.Errorf("the other sink has %s", got)
		}
	})
}

// What a mark carries is bounded: beyond that it stays where it is.
func TestI6AMarkCarriesNoMoreThanItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAhead(t)
		a.live(a.config.Sinks, func(line *Inlet) {
			line.line.MostCarried = 4 * 133 // of which an id of these names is counted as one
			a.run(line)
			synctest.Wait()
			carried, err := a.store.Carried("lake")
			if err != nil || len(carried.IDs) == 0 || len(carried.IDs) > 4 {
				t.Errorf("the mark carries %q, %v", carried.IDs, err)
			}
		})
		a.live(a.config.Sinks, func(line *Inlet) {
			a.open.Store(true)
			a.push(line, news()...)
			a.drain(line, pods())
		})
		if got := a.lake.short(); got != newsTold {
			t.Errorf("lake has %s", got)
		}
	})
}

// A sink that is absent ends nothing where it does not open: it is opened again.
func TestI1AnAbsentSinkThatDoesNotOpenIsOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault, mended := broken("the password is wrong")
		bad, good := &memory{}, &memory{}
		s := sinkOf("bad", bad)
		s.Queue = fifo.Limit{Bytes: 1 << 20, Records: 3}
		r := newRig(t, s, sinkOf("good", good))
		err := r.life(func(line *Inlet) {
			r.push(line, update(pods(), "a", 5))
			r.drain(line, pods())
			bad.mu.Lock()
			bad.fault = fault
			bad.mu.Unlock()
			for v := range 10 {
				r.push(line, update(pods(), "b", 6+v))
			}
			r.drain(line, pods())
			bad.mu.Lock()
			bad.lost = errors.New("the broker does not answer")
			bad.mu.Unlock()
			mended.Store(true)
			for range 100 {
				if synctest.Wait(); strings.Contains(r.requested(), "pods absent bad") {
					break
				}
				time.Sleep(time.Minute)
			}
			r.comeback(line, "bad")
			r.push(line, update(pods(), "a", 91))
			bad.eventually(t, "a/5/updated /90/gap /90/snapshot.begin /90/snapshot.end a/91/updated")
		})
		if err != nil {
			t.Error(err)
		}
	})
}
