package source

import (
	"context"
	"testing"
	"testing/synctest"
)

// TestI4TheReaderWaitsForAWatch, and has the turn while it is open: the end of an older one says nothing of it.
func TestI4TheReaderWaitsForAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns()
		turns.take()
		turns.closed(1)
		turns.give()
		waited := make(chan error, 1)
		go func() { waited <- turns.awaitWatch(t.Context()) }()
		if synctest.Wait(); len(waited) > 0 {
			t.Error("it reads beside none")
		}
		first := turns.opened()
		if err := <-waited; err != nil || turns.open != first {
			t.Errorf("watch %d is open, %v", turns.open, err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if _, err := turns.takeIn(ctx); err == nil {
			t.Error("two have the turn")
		}
		turns.give()
		second := turns.opened()
		turns.take()
		if turns.closed(first); turns.open != second || second == first {
			t.Errorf("watch %d is open, want %d", turns.open, second)
		}
		turns.closed(second)
		turns.give()
		ctx, stop = context.WithCancel(t.Context())
		go func() { waited <- turns.awaitWatch(ctx) }()
		synctest.Wait()
		if stop(); <-waited == nil {
			t.Error("it reads beside a watch that has ended")
		}
	})
}
