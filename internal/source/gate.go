package source

import (
	"context"
	"sync"
	"time"
)

// Gate bounds how many streams begin at once: thousands of definitions that are there at a start or made together, and
// an API server that restarts, must not cost thousands of lists at the same moment. It has room for so many. Those that
// are inside go on to their watch before others come in, so the first change need not wait for the last stream. A nil
// Gate is open.
type Gate chan struct{}

// lease is the longest time that a stream holds up others. One that waits for a sink that is stuck must not hold up
// streams that this sink does not take.
const lease = 5 * time.Second

// enter waits for a place, which leave gives back, or the end of the lease. It returns ctx's error if ctx ends first.
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
