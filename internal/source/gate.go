package source

import (
	"context"
	"sync"
	"time"
)

// Gate bounds how many streams begin a reconcile at once: hundreds of definitions that are made together, and an API
// server that restarts, must not cost hundreds of lists at the same moment. A nil Gate is open.
type Gate struct {
	slots chan struct{}
}

// lease is the longest time that a reconcile holds up others. One that waits for a sink that is stuck must not hold up
// streams that this sink does not take.
const lease = 5 * time.Second

// NewGate returns a gate for so many at once.
func NewGate(atOnce int) *Gate { return &Gate{slots: make(chan struct{}, atOnce)} }

// enter waits for a slot, which leave gives back, or the end of the lease. It returns ctx's error if ctx ends first.
func (g *Gate) enter(ctx context.Context) (leave func(), err error) {
	if g == nil {
		return func() {}, nil
	}
	select {
	case g.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	var once sync.Once
	free := func() { once.Do(func() { <-g.slots }) }
	timer := time.AfterFunc(lease, free)
	return func() {
		timer.Stop()
		free()
	}, nil
}
