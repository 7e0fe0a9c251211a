package telemetry

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// holders are the sinks that lag by more than half of the stream's history, nil where none does.
func (s *streamState) holders(now time.Time) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Sinks)) {
		if since := s.Sinks[name].Since; !since.IsZero() && now.Sub(since) > s.history(now, s.oldest())/2 {
			names = append(names, name)
		}
	}
	return names
}

// CheckHistory tells once of sinks that lag by more than half of the API server's history: a gap follows, unless they
// come back. A sink that fails is told of once until it takes records again, and has told what was lost,
// however many streams follow; the line that says that it still fails counts them.
func (t shown) CheckHistory() {
	t.look()
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	held, soonest, first := 0, mostHistory, ""
	var sinks []string
	holds := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(t.states.streams)) {
		s, told := t.states.streams[name], len(sinks)
		for _, sink := range s.holders(now) {
			if holds[sink]++; !t.states.sinks[sink].holding && t.states.sinks[sink].back == nil {
				sinks = append(sinks, sink)
			}
		}
		if len(sinks) == told {
			continue
		}
		held++
		if left := s.historyLeft(now, s.oldest()); first == "" || left < soonest {
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
