package source

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/listener"
)

// common is what the Informers of a stream have in common: who is given it, what is asked for, and the history that is
// read.
type common struct {
	histories Histories
	refused   atomic.Pointer[error] // why the stream is not read any more; nil while it is

	mu      sync.Mutex                          // guards the following, and the fields that SharedInformer names
	arrived []*listener.Intake                  // sinks that are to be given the stream
	given   map[*listener.Intake]*listener.Seat // who is given the stream now
	asks    []ask
	woken   chan struct{} // buffered 1
	epoch   string        // the newest history
}

// Join lets the sink be given the stream, if it is to be. It returns at once.
func (c *common) Join(sink *listener.Intake) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.arrived, sink) {
		c.arrived = append(c.arrived, sink)
	}
	poke(c.woken)
}

func (c *common) arrivals() []*listener.Intake {
	c.mu.Lock()
	defer c.mu.Unlock()
	arrived := c.arrived
	c.arrived = nil
	return arrived
}

// left notes that no watch gives the stream to the seat any more.
func (c *common) left(seat *listener.Seat) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.given[seat.Intake] == seat {
		delete(c.given, seat.Intake)
	}
}

// has says whether a watch gives the stream to the sink.
func (c *common) has(sink *listener.Intake) bool {
	c.mu.Lock()
	seat := c.given[sink]
	c.mu.Unlock()
	return seat != nil && !seat.IsOver()
}

// history is the epoch that is read: the newest that is known, or a new one if the uid is that of another cluster.
func (c *common) history(uid string, known checkpoint.History) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known > checkpoint.HistoryOf(c.epoch) || c.epoch == "" && known > 0 {
		epoch, err := c.histories.EpochOf(known)
		if err != nil {
			return "", err
		}
		c.epoch = epoch
	}
	switch {
	case uid == "" || c.epoch != "" && change.ClusterOf(c.epoch) == uid:
		return c.epoch, nil
	case c.epoch != "":
		return c.another(uid)
	}
	met, err := c.histories.Met(uid)
	if err == nil {
		c.epoch, err = c.histories.EpochOf(met)
	}
	return c.epoch, err
}

// newHistory begins a new epoch in the place of read, or returns the one that another Informer has begun meanwhile.
func (c *common) newHistory(uid, read string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epoch != read {
		return c.epoch, nil
	}
	return c.another(uid)
}

func (c *common) another(uid string) (string, error) {
	if uid != "" {
		if _, err := c.histories.Met(uid); err != nil {
			return "", err
		}
	}
	now := max(time.Now().UnixMilli(), int64(checkpoint.HistoryOf(c.epoch))+1)
	c.epoch = change.NewEpoch(uid, now)
	return c.epoch, nil
}

// isRefused is why the stream is not read any more, nil while it is.
func (c *common) isRefused() error {
	if why := c.refused.Load(); why != nil {
		return *why
	}
	return nil
}

// drifted asks for a comparison of all sinks that are given the stream, by any watch, except those that are compared.
func (c *common) drifted(way *listener.Way, isCompared func(sink *listener.Intake) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for sink, seat := range c.given {
		if !isCompared(sink) {
			seat.Ask(way, change.Drift)
		}
	}
}

// askedOf passes what is asked for of the seats' sinks to take, and removes it.
func (c *common) askedOf(seats []*listener.Seat, take func(*listener.Seat, ask)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asks = slices.DeleteFunc(c.asks, func(a ask) bool {
		at := slices.IndexFunc(seats, func(seat *listener.Seat) bool { return seat.Intake == a.sink })
		if at >= 0 {
			take(seats[at], a)
		}
		return at >= 0
	})
}

// comparer is the state of the goroutine that reads lists beside the watch. One list serves all sinks that are compared
// with the same part of the stream. The turn guards its fields.
type comparer struct {
	due      chan struct{} // buffered 1: there may be something to compare
	is       bool          // a comparison of any sink is under way
	holdings []*holding    // of the list that is read
	chosen   []ask         // snapshots of chosen objects that are asked for
	current  *ask          // the one of these that is read, nil if none is
}

// release sends what is held back for the sink: another comparison may begin. The caller has the turn.
func (c *comparer) release(seat *listener.Seat) {
	for _, h := range c.holdings {
		if h.Seat == seat {
			h.release(false)
		}
	}
}

// forget drops what is held back for a sink that leaves: another Informer will find it, and may tell the sink of newer
// states first. The caller has the turn.
func (c *comparer) forget(seat *listener.Seat) {
	for _, h := range c.holdings {
		if h.Seat == seat {
			h.held = nil
		}
	}
}

// meets prepares for a record of the watch: what is held back of its object is sent first. The caller has the turn.
func (c *comparer) meets(key change.Key) {
	for _, h := range c.holdings {
		h.meets(key)
	}
}

// holding holds back the newest record of a snapshot for one sink, until it is known whether it is the last, to be
// marked.
type holding struct {
	*listener.Seat
	held *change.Record // nil if there is none
	item checkpoint.Item
}

// hold sends the record that was held, and holds the next one.
func (h *holding) hold(rec *change.Record, item checkpoint.Item) {
	if rec.Filtered {
		h.Tell(rec, item)
		return
	}
	h.release(false)
	h.held, h.item = rec, item
}

// release sends the record that is held.
func (h *holding) release(last bool) {
	if h.held != nil {
		h.held.Last = last
		h.Tell(h.held, h.item)
		h.held = nil
	}
}

// meets sends the record that is held if it is of the object.
func (h *holding) meets(key change.Key) {
	if h.held != nil && h.held.Key == key {
		h.release(false)
	}
}

// ask is a comparison that somebody asks for.
type ask struct {
	sink   *listener.Intake
	reason change.Reason // "" withdraws what was asked for
	limits change.Limits
}
