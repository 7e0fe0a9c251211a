package source

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Gate bounds how many streams begin at once: thousands of definitions that are there at a start or made together, and
// an API server that restarts, must not cost thousands of lists at the same moment. Those that are inside go on to
// their watch before others come in, so the first change need not wait for the last stream. A nil Gate is open.
type Gate struct {
	mu      sync.Mutex
	free    int // places
	waiting [othersLast + 1][]chan struct{}
}

// lease is the longest time that a stream holds up others. One that waits for a sink that is stuck must not hold up
// streams that this sink does not take.
const lease = 5 * time.Second

// precedence says who comes in first.
type precedence int

const (
	builtInFirst precedence = iota // what every cluster has, and most people look at
	knownNext                      // it has a position, which the server may soon forget
	othersLast
)

// NewGate returns a gate for so many at once.
func NewGate(atOnce int) *Gate { return &Gate{free: atOnce} }

// enter waits for a place, which leave gives back, or the end of the lease. It returns ctx's error if ctx ends first.
func (g *Gate) enter(ctx context.Context, p precedence) (leave func(), err error) {
	if g == nil {
		return func() {}, nil
	}
	turn := make(chan struct{}) // closed when it is the caller's
	g.mu.Lock()
	if g.free > 0 {
		g.free--
		close(turn)
	} else {
		g.waiting[p] = append(g.waiting[p], turn)
	}
	g.mu.Unlock()
	select {
	case <-turn:
	case <-ctx.Done():
		g.mu.Lock()
		defer g.mu.Unlock()
		before := len(g.waiting[p])
		g.waiting[p] = slices.DeleteFunc(g.waiting[p], func(c chan struct{}) bool { return c == turn })
		if len(g.waiting[p]) == before { // it was this one's turn
			g.next()
		}
		return nil, context.Cause(ctx)
	}
	free := sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.next()
	})
	timer := time.AfterFunc(lease, free)
	return func() {
		timer.Stop()
		free()
	}, nil
}

// next gives a place to who comes next.
func (g *Gate) next() {
	for p, waiting := range g.waiting {
		if len(waiting) > 0 {
			close(waiting[0])
			g.waiting[p] = waiting[1:]
			return
		}
	}
	g.free++
}
