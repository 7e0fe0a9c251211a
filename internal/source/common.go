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

// common is what the informers of a stream have in common: who is given it, what is asked for, and the history that is
// read.
type common struct {
	histories Histories
	refused   atomic.Pointer[error] // why the stream is not read any more; nil while it is

	mu      sync.Mutex                          // guards the following, and what SharedInformer says
	arrived []*listener.Intake                  // that are to be given the stream
	given   map[*listener.Intake]*listener.Seat // who is given the stream now
	asks    []ask
	woken   chan struct{} // buffered 1
	epoch   string        // the newest history
}

// Join gives the sink the stream from now on, where it is to be given that. It returns at once.
func (c *common) Join(sink *listener.Intake) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.arrived, sink) {
		c.arrived = append(c.arrived, sink)
	}
	c.wake()
}

func (c *common) wake() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

func (c *common) arrivals() []*listener.Intake {
	c.mu.Lock()
	defer c.mu.Unlock()
	arrived := c.arrived
	c.arrived = nil
	return arrived
}

// left notes that a watch does not give the sink the stream any more.
func (c *common) left(seat *listener.Seat) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.given[seat.Intake] == seat {
		delete(c.given, seat.Intake)
	}
}

// has says whether a watch gives the sink the stream.
func (c *common) has(sink *listener.Intake) bool {
	c.mu.Lock()
	seat := c.given[sink]
	c.mu.Unlock()
	return seat != nil && !seat.IsOver()
}

// history is the history of the cluster that is read: the newest that is known.
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

// newHistory is another history than the one that was read, or the one that somebody else has found meanwhile.
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

// drifted asks for a comparison of the sinks that are given the stream, by any watch, but for the compared ones.
func (c *common) drifted(way *listener.Way, isCompared func(sink *listener.Intake) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for sink, seat := range c.given {
		if !isCompared(sink) {
			seat.Ask(way, change.Drift)
		}
	}
}

// askedOf takes what is asked for of the sinks.
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
