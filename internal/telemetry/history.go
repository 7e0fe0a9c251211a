package telemetry

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// The API server answers a watch out of a ring of each resource's newest events, which begins with smallestRing of them
// and doubles, up to largestRing, while its oldest event is younger than leastHistory (k8s.io/apiserver,
// pkg/storage/cacher/watch_cache.go). Events are not in a ring but read from etcd, which kube-apiserver compacts every
// five minutes (--etcd-compaction-interval). After a restart of the API server its rings are empty, which nobody can
// foresee: so all that is made of this is an estimate.
const (
	smallestRing = 100
	largestRing  = 102400
	leastHistory = 75 * time.Second
	mostHistory  = 5 * time.Minute // where it is quiet
)

// historyOf is how far back an API server can tell at least what changed of a resource that changes so often a second.
func historyOf(perSecond float64) time.Duration {
	size := float64(smallestRing)
	for size < largestRing && size < perSecond*leastHistory.Seconds() {
		size *= 2
	}
	if size >= perSecond*mostHistory.Seconds() {
		return mostHistory
	}
	return time.Duration(size / perSecond * float64(time.Second))
}

// paceSpan is how long changes are counted, so that the changes that a watch brings at once after a restart, a ring at
// most, are not taken for a pace. In as much time without changes the pace is taken for half of what it was.
const paceSpan = time.Minute

// pace is how often a resource changes, by the changes that were read.
type pace struct {
	began time.Time // of the span that is counted
	count float64
	last  float64 // a second, in the spans before
}

// note counts a change.
func (p *pace) note(at time.Time) {
	if p.began.IsZero() {
		p.began = at
	}
	if at.Sub(p.began) >= paceSpan {
		*p = pace{began: at, last: p.perSecond(at)}
	}
	p.count++
}

// perSecond is the pace at a time.
func (p *pace) perSecond(at time.Time) float64 {
	took := max(at.Sub(p.began), paceSpan)
	faded := p.last * math.Exp2(-float64(took-paceSpan)/float64(paceSpan))
	return max(p.count/took.Seconds(), faded)
}

// changed counts the change, unless it is of a snapshot.
func (s *streamState) changed(rec *change.Record) {
	if rec.Snapshot == nil && rec.Op.OfObject() {
		s.pace.note(rec.Received)
	}
}

// history is how far back the API server can tell what changed of the stream. oldest is when the oldest record was
// received that is not saved, zero for none: what came before that says how often the resource changes, since reading
// may wait now. Of a resource of which only a part is read nobody knows how often all of it changes.
func (s *streamState) history(now, oldest time.Time) time.Duration {
	if s.uncached {
		return mostHistory
	}
	if oldest.IsZero() {
		oldest = now
	}
	whole := historyOf(s.pace.perSecond(oldest))
	if s.partial {
		whole = min(whole, leastHistory)
	}
	return whole
}

// historyLeft is how long, about, a watch can still be opened where the state stands.
func (s *streamState) historyLeft(now, oldest time.Time) time.Duration {
	whole := s.history(now, oldest)
	if oldest.IsZero() {
		return whole
	}
	return max(0, whole-now.Sub(oldest))
}

// isUncached says whether the API server reads the resource's watches from etcd.
func isUncached(resource change.Resource) bool {
	return resource.Name == "events" && (resource.Group == "" || resource.Group == "events.k8s.io")
}

// holders are the sinks that have not acknowledged what a stream has waited for longer than half of its history, nil
// where it has not.
func (all *states) holders(s *streamState, now, oldest time.Time) []string {
	if oldest.IsZero() || s.historyLeft(now, oldest) >= s.history(now, oldest)/2 {
		return nil
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(all.sinks)) {
		if waits := all.sinks[name].oldest; !waits.IsZero() && !waits.After(oldest) {
			names = append(names, name)
		}
	}
	return names
}

// CheckHistory tells once of sinks that hold streams up for more than half of the API server's history: a gap follows,
// unless they come back. A sink that fails is told of once until it takes records again, and has told what was lost,
// however many streams follow; the line that says that it still fails counts them.
func (t shown) CheckHistory() {
	now, unsaved := time.Now(), t.unsaved()
	t.mu.Lock()
	defer t.mu.Unlock()
	held, soonest, first := 0, mostHistory, ""
	var sinks []string
	holds := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(t.states.streams)) {
		s, oldest, told := t.states.streams[name], unsaved[name], len(sinks)
		for _, sink := range t.states.holders(s, now, oldest) {
			if holds[sink]++; !t.states.sinks[sink].holding && t.states.sinks[sink].back == nil {
				sinks = append(sinks, sink)
			}
		}
		if len(sinks) == told {
			continue
		}
		held++
		if left := s.historyLeft(now, oldest); first == "" || left < soonest {
			soonest, first = left, name
		}
	}
	for name, s := range t.states.sinks {
		s.holds = holds[name]
		s.holding = s.holds > 0 && (s.holding || s.back == nil) || s.holding && !s.outage.began.IsZero()
	}
	if held == 0 {
		return
	}
	slices.Sort(sinks)
	for _, name := range sinks {
		t.states.sinks[name].outage.heard(now)
	}
	t.Logger.Warn("sinks hold streams up; the API server will have forgotten what changes meanwhile: bring them back, or give them queue.full: spool",
		"sinks", strings.Join(slices.Compact(sinks), ","), "streams", held, "resource", first, "historyLeft", soonest.Round(time.Second).String())
}
