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

// ledger is what is to be saved of what the sink has acknowledged.
type ledger struct {
	entries []entry
	mark    string
	marked  bool
	size    int // bytes of the records, about
}

// Saving is what one save has of a sink: what it has acknowledged, and what goes to disk for it.
type Saving struct {
	ledger
	chunks []fifo.Chunk // what goes to disk; the store encodes their values
	extent fifo.Spool
	spools bool // the spool is another one than the state has
	back   []*change.Record
	taken  []*change.Record // what goes to disk
}

// entry is an item in the ledger.
type entry struct {
	checkpoint.Item
	seq      uint64
	as       entryKind
	kept     *checkpoint.KeptObject // with it, nil is nothing
	resolved time.Time              // of a Resolved, when it was received
	proof    *change.Proof          // of a Resolved that is applied
}

// entryKind is what becomes of an item.
type entryKind byte

const (
	acked   entryKind = iota // the sink has it
	spooled                  // it goes to disk
	logged                   // the sink has it from disk
)

// maxUnsaved is how much the ledger of a sink holds in memory at most, in bytes, about: while the state cannot be saved
// the sink is given nothing more (I6).
const maxUnsaved = 8 << 20

// itemBytes is what an item takes beside the names of its object, about.
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
	return len(s.entries) == 0 && !s.marked && len(s.chunks) == 0 && !s.spools
}
