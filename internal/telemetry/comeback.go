package telemetry

import "time"

// calm is how long after the end of an outage streams that it held up must be read on without a gap until nothing is
// held to be lost.
const calm = 10 * time.Second

// The answers to what an outage has lost.
const (
	lostNothing = "nothing"
	lostStates  = "intermediate states: the line of the gap tells which"
	lostUnknown = "not known yet: streams were held up; the line of a gap names each that lost states"
)

// comeback is the end of an outage, until the log is told of it.
type comeback struct {
	outage
	at    time.Time
	waits []any
	held  bool // streams
}

// lost says what the outage has lost, if that is known. It is where the streams that it held up are read again, which
// they are when the sink has all that waited, and none of them has a gap, or the gap's line is told.
func (c *comeback) lost(now, oldest time.Time, gaps, busy bool) (text string, isKnown bool) {
	late := now.Sub(c.at) >= word
	switch {
	case gaps && (!busy || !c.held || late):
		return lostStates, true
	case !c.held:
		return lostNothing, true
	case late:
		return lostUnknown, true
	case busy || now.Sub(c.at) < calm:
		return "", false
	}
	return lostNothing, oldest.IsZero() || oldest.After(c.at)
}

// tellBack tells the log that a sink is back, as soon as it is known what was lost; the caller holds mu.
func (t *known) tellBack(name string, s *sinkState, now time.Time) {
	if s.back == nil {
		return
	}
	text, isKnown := s.back.lost(now, s.oldest, t.gapsOf(s) > s.back.gaps, t.states.restless())
	if isKnown {
		t.tellBackAs(name, s, text)
	}
}

// tellBackNow tells it although that may not be known.
func (t *known) tellBackNow(name string, s *sinkState) {
	if s.back == nil {
		return
	}
	text := lostUnknown
	if t.gapsOf(s) > s.back.gaps {
		text = lostStates
	}
	t.tellBackAs(name, s, text)
}

func (t *known) tellBackAs(name string, s *sinkState, lost string) {
	c := s.back
	s.back = nil
	line := []any{"sink", name, "for", c.at.Sub(c.began).Round(time.Second), "attempts", c.attempts, "lost", lost}
	if c.held {
		line = append(line, "back", c.at.UTC().Format(time.RFC3339))
	}
	t.Logger.Info("sink accepts records again", append(line, c.waits...)...)
}

// restless says whether a gap is about to be told.
func (all *states) restless() bool {
	mended, open := all.gaps.untold()
	for _, s := range all.streams {
		if s.expired != "" {
			return true
		}
	}
	return len(mended)+len(open) > 0
}
