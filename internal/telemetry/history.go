package telemetry

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// holders are the sinks that have not acknowledged what a stream has waited for longer than half of its history, nil
// where it has not.
func (all *states) holders(s *streamState, now, oldest time.Time) []string {
	if oldest.IsZero() || now.Sub(oldest) <= s.history(now, oldest)/2 {
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
