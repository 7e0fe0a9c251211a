package source

import (
	"context"
	"sync"
	"time"
)

// Gate bounds how many streams begin at once, by its capacity: a start with thousands of definitions, or a restarted
// API server, must not cost thousands of lists at the same moment. A stream keeps its place until its watch is open, so
// the first change need not wait for the last stream. A nil Gate is no bound.
type Gate chan struct{}

// lease is how long a stream may keep its place: one that waits for a stuck sink must not hold up streams that this
// sink does not take.
const lease = 5 * time.Second

// enter waits for a place, which leave or the end of the lease gives back. It returns ctx's error if ctx ends first.
func (g Gate) enter(ctx context.Context) (leave func(), err error) {
	if g == nil {
		return func() {}, nil
	}
	select {
	case g <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	free := sync.OnceFunc(func() { <-g })
	timer := time.AfterFunc(lease, free)
	return func() {
		timer.Stop()
		free()
	}, nil
}
