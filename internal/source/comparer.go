package source

import (
	"context"
	"sync"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/listener"
)

// comparer reads lists beside the watch, in a goroutine of its own while there is anything to compare. One list serves
// all sinks that are compared with the same part of the stream.
type comparer struct {
	read     func(ctx context.Context) // reads until nothing is to be compared
	is       bool                      // a comparison of any sink is under way; whoever has the turn may use it
	holdings []*holding                // of the list that is read; as is

	mu      sync.Mutex      // guards the following
	running context.Context // of the informer; nil before its first watch
	runs    bool
	again   bool // it is to look once more
	over    sync.WaitGroup

	chosen  []ask // snapshots of chosen objects that are asked for; as is
	current *ask  // the one that is read; as is
}

// look has it look what is to be compared.
func (c *comparer) look() {
	c.mu.Lock()
	ctx := c.running
	c.mu.Unlock()
	if ctx != nil && ctx.Err() == nil {
		c.wake(ctx)
	}
}

// wake begins to compare, if anything is to be, for as long as ctx lives.
func (c *comparer) wake(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = ctx
	if c.again = true; c.runs {
		return
	}
	c.runs = true
	c.over.Go(func() {
		for c.goesOn() {
			c.read(ctx)
		}
	})
}

func (c *comparer) goesOn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs, c.again = c.again, false
	return c.runs
}

// wait returns when nobody compares any more.
func (c *comparer) wait() { c.over.Wait() }

// release lets go what is held back for the sink: another comparison may begin. The caller has the turn.
func (c *comparer) release(seat *listener.Seat) {
	for _, h := range c.holdings {
		if h.Seat == seat {
			h.release(false)
		}
	}
}

// meets prepares for a record of the watch: what is held back of its object goes first. The caller has the turn.
func (c *comparer) meets(key change.Key) {
	for _, h := range c.holdings {
		h.meets(key)
	}
}

// holding is the last record of a snapshot so far for one sink, so that the last of all can be marked.
type holding struct {
	*listener.Seat
	held *change.Record // nil is none
	item checkpoint.Item
}

// hold lets the record go that was held, and holds the next one until it is known whether it is the last.
func (h *holding) hold(rec *change.Record, item checkpoint.Item) {
	if rec.Filtered {
		h.Tell(rec, item)
		return
	}
	h.release(false)
	h.held, h.item = rec, item
}

// release lets the record go that is held.
func (h *holding) release(last bool) {
	if h.held != nil {
		h.held.Last = last
		h.Tell(h.held, h.item)
		h.held = nil
	}
}

// meets lets the record go that is held, where it is of the object.
func (h *holding) meets(key change.Key) {
	if h.held != nil && h.held.Key == key {
		h.release(false)
	}
}

// ask is what somebody asks for.
type ask struct {
	sink   *listener.Intake
	reason change.Reason // "" withdraws what was asked for
	limits change.Limits
}
