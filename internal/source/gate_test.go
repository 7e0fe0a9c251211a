package source

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestI6SoManyBeginAtOnce, and one that takes long holds up others for the lease only.
func TestI6SoManyBeginAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, start := make(Gate, 2), time.Now()
		enter := func() (leave func(), after time.Duration) {
			leave, err := g.enter(t.Context())
			must(t, err)
			return leave, time.Since(start)
		}
		_, first := enter()
		quick, second := enter()
		time.AfterFunc(time.Second, quick)
		third, after := enter()
		if first != 0 || second != 0 || after != time.Second {
			t.Errorf("entered after %s, %s, %s", first, second, after)
		}
		fourth, after := enter() // the first one waits for a sink that is stuck
		if after != lease {
			t.Errorf("entered after %s, want %s", after, lease)
		}
		third()
		third() // twice gives nothing back twice
		fifth, _ := enter()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := g.enter(ctx); err == nil {
			t.Error("three are inside")
		}
		fourth()
		fifth()
	})
}
