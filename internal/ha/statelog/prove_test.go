package statelog

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// faulty is a writer with a fault before each write and each opening.
type faulty struct {
	sink.Sink
	writes, opens atomic.Pointer[fault]
}

// fault is what happens before a request, whose error is the answer.
type fault func(ctx context.Context) error

// breaks makes the fault that of the requests.
func breaks(requests *atomic.Pointer[fault], f fault) { requests.Store(&f) }

func (f *faulty) Write(ctx context.Context, batch []sink.Message) (sink.Mark, error) {
	if err := (*f.writes.Load())(ctx); err != nil {
		return "", err
	}
	return f.Sink.Write(ctx, batch)
}

func (f *faulty) Open(ctx context.Context, at sink.Opening) error {
	if err := (*f.opens.Load())(ctx); err != nil {
		return err
	}
	return f.Sink.Open(ctx, at)
}

func none(context.Context) error { return nil }

// leader is one that writes the log until the test ends.
type leader struct {
	*Log
	writer *faulty
	failed []error
}

func newLeader(t *testing.T, w *world) *leader {
	t.Helper()
	l, place := &leader{}, w.place()
	l.writer = &faulty{Sink: place.Sink}
	breaks(&l.writer.writes, none)
	breaks(&l.writer.opens, none)
	place.Sink = l.writer
	claimed, err := Claim(t.Context(), place, Bid{Of: Identity{Cluster: "c"}, As: Claimant{Member: "a"}})
	if err == nil {
		w.queue = NewQueue()
		l.Log, err = New(Options{
			Place: place, Claimed: claimed, Of: Identity{Cluster: "c", Instance: "i"}, Store: w, Queue: w.queue, Files: w.names, File: w.file,
			Failed: func(err error) { l.failed = append(l.failed, err) }, Written: func() {},
		})
	}
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	go l.Run(ctx)
	t.Cleanup(func() { cancel(); l.Wait() })
	synctest.Wait()
	return l
}

// claimOf makes the member the log's writer.
func (w *world) claimOf(member string) *Claimed {
	w.t.Helper()
	claimed, err := Claim(w.t.Context(), w.place(), Bid{Of: Identity{Cluster: "c"}, As: Claimant{Member: member}})
	must(w.t, err)
	return claimed
}

// TestI10AProofFailsBehindAnotherClaim: as long as it succeeds, nobody else has claimed the log, and whoever claims it
// next finds in it what it would have found without the proofs.
func TestI10AProofFailsBehindAnotherClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := oneWorld(t)
		a := newLeader(t, w)
		for range 2 {
			synctest.Wait()
			must(t, a.Prove(t.Context()))
		}
		synctest.Wait()
		if at := w.judge(); at < 0 {
			t.Error("the log has nothing")
		}
		w.claimOf("b")
		for range 2 {
			if err := a.Prove(t.Context()); !sink.IsFenced(err) {
				t.Errorf("behind another claim: %v", err)
			}
		}
		if len(a.failed) != 1 || !sink.IsFenced(a.failed[0]) {
			t.Errorf("it was told %v", a.failed)
		}
	})
}

// TestAProofThatFailsSaysNothingOfWhoeverAsks: an error of the log's own kind would stop a sink, or end a run.
func TestAProofThatFailsSaysNothingOfWhoeverAsks(t *testing.T) {
	silent := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	fails := func(err error) fault { return func(context.Context) error { return err } }
	for want, f := range map[string]fault{
		"taken no write for 10s": silent, "no right": fails(&sink.PermanentError{Err: errors.New("no right")}),
		"too early": fails(&sink.LateError{Err: errors.New("too early")}),
	} {
		synctest.Test(t, func(t *testing.T) {
			a := newLeader(t, oneWorld(t))
			breaks(&a.writer.writes, f)
			began := time.Now()
			for range 3 { // also while the log is left alone
				err := a.Prove(t.Context())
				var refused *sink.PermanentError
				var late *sink.LateError
				if err == nil || !strings.Contains(err.Error(), want) || errors.As(err, &refused) || errors.As(err, &late) {
					t.Errorf("%v, want %q", err, want)
				}
			}
			if took := time.Since(began); took > 3*proving {
				t.Errorf("it took %s", took)
			}
			bounded, cancel := context.WithTimeoutCause(t.Context(), time.Second, context.Canceled)
			defer cancel()
			breaks(&a.writer.writes, silent)
			time.Sleep(2 * permanent)
			if err := a.Prove(bounded); !errors.Is(err, context.Canceled) {
				t.Errorf("when its time is over: %v", err)
			}
		})
	}
}

// TestI10AWriterThatSleptDoesNotTakeTheLogBack: another member may claim the log when it has been looked at and is to
// be opened again.
func TestI10AWriterThatSleptDoesNotTakeTheLogBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := oneWorld(t)
		a := newLeader(t, w)
		breaks(&a.writer.opens, func(context.Context) error { w.claimOf("b"); return nil })
		breaks(&a.writer.writes, func(context.Context) error { return errors.New("the connection broke") })
		if err := a.Prove(t.Context()); err == nil || sink.IsFenced(err) {
			t.Fatal(err)
		}
		breaks(&a.writer.writes, none)
		time.Sleep(2 * again)
		if err := a.Prove(t.Context()); !sink.IsFenced(err) {
			t.Errorf("the writer has the log again: %v", err)
		}
		if last := w.claimOf("c").seen.claim.Member; last != "b" {
			t.Errorf("the log is %q's, want b's", last)
		}
	})
}
