package listener

import (
	"cmp"
	"maps"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// View is how one sink stands with one stream, as people are told.
type View struct {
	Sink    string
	Version string // the saved position; "" is none
	Moved   time.Time
	// Comparing is why it is being compared with the cluster; "" is that it is not.
	Comparing change.Reason
	Waits     Waits
	Oldest    time.Time // when the oldest record was received that is neither delivered nor on disk; zero is none
}

// Waits is why a sink is not given a stream as the others are; "" is that it is.
type Waits string

// What a sink may wait for.
const (
	ForOpening Waits = "opening" // it is not open
	ForRepair  Waits = "stopped" // a person must mend it
	ForSchema  Waits = "schema"  // of the stream
	ForOthers  Waits = "apart"   // it lags, and is read for with a watch of its own
)

// Since is since when the sink's position stands still, zero where it does not.
func (v *View) Since() time.Time {
	if v.Waits != "" && v.Waits != ForOthers {
		return v.Moved
	}
	return v.Oldest
}

// shown is what is saved of a sink, for those who look. It has a lock of its own: a full disk stops nobody who looks.
type shown struct {
	mu     sync.Mutex // guards the following
	mark   string
	places map[string]checkpoint.Places // by resource; each is replaced, never changed
	moved  map[part]time.Time
	began  time.Time
}

// part is what a stream reads of a resource.
type part struct {
	resource string
	scope    checkpoint.Scope
}

// showAll shows what is saved.
func (v *shown) showAll(state *checkpoint.SinkState) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.mark, v.places = state.Mark, map[string]checkpoint.Places{}
	if v.moved == nil {
		v.moved, v.began = map[part]time.Time{}, time.Now()
	}
	for resource, places := range state.Given().Places {
		v.places[resource] = maps.Clone(places)
	}
}

// show shows what has changed with the items.
func (v *shown) show(entries []entry, state *checkpoint.SinkState) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.places == nil {
		return
	}
	now, changed := time.Now(), map[string]bool{}
	for at := range entries {
		item := &entries[at]
		changed[item.Resource] = true
		if item.Given != (checkpoint.Point{}) || item.Kind == checkpoint.Begin {
			v.moved[part{item.Resource, item.Scope}] = now
		}
	}
	for resource := range changed {
		v.places[resource] = maps.Clone(state.Given().Places[resource])
	}
	v.mark = state.Mark
}

func (v *shown) of(stream *change.Stream, view *View) {
	v.mu.Lock()
	defer v.mu.Unlock()
	resource, scope := stream.Resource.String(), checkpoint.ScopeOf(stream)
	view.Version = v.places[resource].Lowest(scope).Version
	if view.Moved = v.moved[part{resource, scope}]; view.Moved.IsZero() {
		view.Moved = v.began
	}
	v.places[resource].Each(scope, func(_ string, place checkpoint.Place) {
		if place.Comparison.UnderWay() {
			view.Comparing = cmp.Or(place.Comparison.Reason, change.Stale)
		}
	})
}
