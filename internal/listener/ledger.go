package listener

import (
	"cmp"
	"maps"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// View is the state of one sink and one stream, for people.
type View struct {
	Sink    string
	Version string // the saved position; "" is none
	Moved   time.Time
	// Comparing is why it is being compared with the cluster; "" if it is not.
	Comparing change.Reason
	Waits     Waits
	Oldest    time.Time // when the oldest record was received that is neither delivered nor on disk; zero is none
}

// Waits is why a sink is not given a stream by the common watch; "" if it is.
type Waits string

// What a sink may wait for.
const (
	ForOpening Waits = "opening" // it is not open
	ForRepair  Waits = "stopped" // a person must mend it
	ForSchema  Waits = "schema"  // its format has no schema of the stream
	ForOthers  Waits = "apart"   // it lags, and has a watch of its own
)

// Since is when the sink's position stopped moving; zero if nothing holds it up.
func (v *View) Since() time.Time {
	if v.Waits != "" && v.Waits != ForOthers {
		return v.Moved
	}
	return v.Oldest
}

// shown is what is saved of a sink, for the status. It has a lock of its own, so a full disk does not hold up the
// status.
type shown struct {
	mu     sync.Mutex // guards the following
	mark   string
	places map[string]checkpoint.Places // by resource; each is replaced, never changed
	moved  map[part]time.Time
	began  time.Time
}

// part is a resource in the scope of a stream.
type part struct {
	resource string
	scope    checkpoint.Scope
}

// showAll shows the whole saved state.
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

// show shows what has changed with the entries.
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

// ledger is what the sink has acknowledged, and is not saved yet.
type ledger struct {
	entries []entry
	mark    string
	marked  bool
	size    int // bytes of the entries, about
}

// Saving is what one save writes of a sink: what the sink has acknowledged, and what goes to disk for it.
type Saving struct {
	ledger
	chunks []fifo.Chunk // of taken; the store encodes their values
	extent fifo.Spool
	spools bool             // the extent differs from the saved one
	back   []*change.Record // dead letters that are given back
	taken  []*change.Record // what goes to disk
}

// entry is an item in the ledger.
type entry struct {
	checkpoint.Item
	seq      uint64
	as       entryKind
	kept     *checkpoint.KeptObject // what is kept of its object then; nil leaves that as it is
	resolved time.Time              // when a Resolved record was received
	proof    *change.Proof          // made when a Resolved record is applied
}

// entryKind is what becomes of an item.
type entryKind byte

const (
	acked   entryKind = iota // the sink has it
	spooled                  // it goes to disk
	logged                   // the sink has it from disk
)

// maxUnsaved is about how many bytes the ledger of a sink holds at most (I6): beyond that the sink is given nothing
// until the state can be saved.
const maxUnsaved = 8 << 20

// itemBytes is about how many bytes an entry takes beside the names of its object.
const itemBytes = 320

func (l *ledger) add(one entry) {
	l.entries = append(l.entries, one)
	l.size += itemBytes + len(one.Key.Namespace) + len(one.Key.Name)
	if one.kept != nil {
		l.size += len(one.kept.Object)
	}
}

// isEmpty says whether there is nothing to save.
func (s *Saving) isEmpty() bool {
	return len(s.entries) == 0 && !s.marked && len(s.chunks) == 0 && !s.spools && len(s.back) == 0
}
