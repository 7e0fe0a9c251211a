package pipeline

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// TestI6ASinkThatOpensAndDoesNotWriteIsLeftAlone: that it opens proves nothing. Once it has taken a batch, it is opened
// at once after a failure.
func TestI6ASinkThatOpensAndDoesNotWriteIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		target := &memory{fault: func(context.Context, []sink.Message) error {
			if broken.Load() {
				return errors.New("no room")
			}
			return nil
		}}
		r := newRig(t, sinkOf("s", target))
		opens := func() int {
			synctest.Wait()
			target.mu.Lock()
			defer target.mu.Unlock()
			return len(target.opens)
		}
		if err := r.life(func(line *Inlet) {
			for round := range 2 {
				broken.Store(true)
				before := opens()
				r.push(line, update(pods(), "a", 2*round+1))
				if got := opens() - before; got != 1 {
					t.Errorf("round %d: it was opened %d times at once, want once", round, got)
				}
				time.Sleep(10 * time.Minute)
				if got := opens() - before; got < 60 || got > 200 {
					t.Errorf("round %d: it was opened %d times in ten minutes", round, got)
				}
				broken.Store(false)
				r.drain(line, pods())
				r.push(line, update(pods(), "b", 2*round+2))
				r.drain(line, pods())
			}
		}); err != nil {
			t.Fatal(err)
		}
		if got, want := target.short(), "a/1/updated b/2/updated a/3/updated b/4/updated"; got != want {
			t.Errorf("log is %s, want %s", got, want)
		}
	})
}
