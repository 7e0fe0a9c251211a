package source

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

// A snapshot goes ahead of its sinks as far as they take in about maxWait: live changes wait after it for that long.
const (
	leastAhead = 64 << 10
	mostAhead  = 2 << 20
	minWait    = 10 * time.Millisecond
	maxWait    = 25 * time.Millisecond
	maxStuck   = 5 * time.Second // for others, too, that are compared with the same list
)

// pace is how many bytes of a snapshot may wait for a sink. The zero value is ready for use.
type pace struct{ ahead int }

// limit is how many may wait now.
func (p *pace) limit() int { return max(p.ahead, leastAhead) }

// waited notes how long it took until half of them were taken.
func (p *pace) waited(d time.Duration) {
	switch {
	case d < minWait:
		p.ahead = min(2*p.limit(), mostAhead)
	case d > maxWait:
		p.ahead = max(p.limit()/2, leastAhead)
	}
}

// NewRate bounds how many objects full snapshots read in a second, whatever their streams; 0 is no bound.
func NewRate(objectsPerSecond int) *rate.Limiter {
	if objectsPerSecond <= 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(objectsPerSecond), turnObjects)
}

// A turn compares a part of a page: small enough that no live change waits for it.
const (
	turnObjects = 32
	turnBytes   = 128 << 10
)

// turns is how the watch and the reader go on beside each other. They put records in line by turns (I3). The turn
// guards what both use: the seats, what was brought, the list that is read, and which watch is open.
type turns struct {
	taken   chan struct{} // not a lock, since whoever has the turn may wait long for room in a queue
	moved   chan struct{} // buffered 1: the watch has moved, and the reader may wait for that
	watches int           // that were opened
	open    int           // the number of the one that is, 0 for none
}

func newTurns() turns { return turns{taken: make(chan struct{}, 1), moved: make(chan struct{}, 1)} }

func (t *turns) take() { t.taken <- struct{}{} }
func (t *turns) give() { <-t.taken }

// takeIn returns how to give the turn back, or ctx's error.
func (t *turns) takeIn(ctx context.Context) (give func(), err error) {
	select {
	case t.taken <- struct{}{}:
		return t.give, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// opened notes that a watch is open, and returns its number.
func (t *turns) opened() int {
	t.take()
	defer t.give()
	t.watches++
	t.open = t.watches
	t.signal()
	return t.open
}

// closed notes that the watch has ended; the caller has the turn.
func (t *turns) closed(number int) {
	if t.open == number {
		t.open = 0
	}
}

// signal makes the reader look again, if it waits.
func (t *turns) signal() { poke(t.moved) }

// poke wakes who reads the channel, which has room for one, now or when it comes to that.
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
