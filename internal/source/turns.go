package source

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

// A snapshot is ahead of its sinks by what they take in about maxWait: live changes wait behind it for that long.
const (
	leastAhead = 64 << 10 // bytes
	mostAhead  = 2 << 20
	minWait    = 10 * time.Millisecond
	maxWait    = 25 * time.Millisecond
	maxStuck   = 5 * time.Second // how long a sink that takes nothing holds up the others of its list
)

// nextAhead is how many bytes of a snapshot may wait for a sink, of which half were taken in the time where so many
// waited.
func nextAhead(ahead int, took time.Duration) int {
	switch {
	case took < minWait:
		return min(2*ahead, mostAhead)
	case took > maxWait:
		return max(ahead/2, leastAhead)
	}
	return ahead
}

// NewRate bounds how many objects full snapshots read in a second, whatever their streams; 0 is no bound.
func NewRate(objectsPerSecond int) *rate.Limiter {
	if objectsPerSecond <= 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(objectsPerSecond), turnObjects)
}

// The part of a page that the reader compares in one turn, small enough that no live change waits for it long.
const (
	turnObjects = 32
	turnBytes   = 128 << 10
)

// turns let the watch and the reader queue records by turns (I3). Whoever has the turn may use what both share: the
// seats, what was brought, the list that is read, and which watch is open.
type turns struct {
	taken   chan struct{} // not a lock, since whoever has the turn may wait long for room in a queue
	moved   chan struct{} // buffered 1: the watch has moved, for which the reader may wait
	watches int           // how many were opened
	open    int           // the number of the open watch, 0 if none is
}

func newTurns() turns { return turns{taken: make(chan struct{}, 1), moved: make(chan struct{}, 1)} }

func (t *turns) take() { t.taken <- struct{}{} }
func (t *turns) give() { <-t.taken }

// takeIn takes the turn and returns a function that gives it back, or returns ctx's error.
func (t *turns) takeIn(ctx context.Context) (give func(), err error) {
	select {
	case t.taken <- struct{}{}:
		return t.give, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// opened notes that another watch is open, and returns its number.
func (t *turns) opened() int {
	t.take()
	defer t.give()
	t.watches++
	t.open = t.watches
	t.signal()
	return t.open
}

// closed notes that the watch has ended. The caller has the turn.
func (t *turns) closed(number int) {
	if t.open == number {
		t.open = 0
	}
}

// signal wakes the reader if it waits for the watch.
func (t *turns) signal() { poke(t.moved) }

// poke wakes the reader of the channel, which is buffered 1, now or when it reads next.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// awaitWatch returns with the turn when a watch is open.
func (t *turns) awaitWatch(ctx context.Context) error {
	for {
		if _, err := t.takeIn(ctx); err != nil {
			return err
		}
		if t.open != 0 {
			return nil
		}
		t.give()
		select {
		case <-t.moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
