package telemetry

import "time"

// gapsOf are all gaps that a sink's consumers were told of; the caller holds mu.
func (t *known) gapsOf(s *sinkState) int {
	gaps := s.Gaps
	for _, stream := range t.states.streams {
		gaps += stream.Gaps
	}
	return gaps
}

// troubled tells the log of a failed attempt, unless it has been told of the outage a moment ago; the caller holds mu.
func (t ofSinks) troubled(name, text string, atOnce bool, cause ...any) {
	now, s := time.Now(), t.states.sinks[name]
	first, again := s.outage.fails(now, t.gapsOf(s), atOnce)
	s.goesOn()
	line := append([]any{"sink", name}, cause...)
	switch {
	case first:
		t.tellBackNow(name, s)
		line = append(line, s.waits()...)
		if began := s.outage.began; began.Before(now) {
			line = append(line, "since", began.UTC().Format(time.RFC3339))
		}
		t.Logger.Warn(text, line...)
	case again:
		line = append(line, "since", s.outage.began.UTC().Format(time.RFC3339), "for", now.Sub(s.outage.began).Round(time.Second), "attempts", s.outage.attempts, "streamsHeldUp", s.holds)
		t.Logger.Warn("sink still fails", append(line, s.waits()...)...)
	}
}

// goesOn makes an outage that an earlier process has left begin when the oldest record was received that it has kept on
// disk. Until the sink was open once, whatever waits has waited for that.
func (s *sinkState) goesOn() {
	if !s.opened && !s.oldest.IsZero() && s.oldest.Before(s.outage.began) {
		s.outage.began = s.oldest
	}
}

// recovered tells the log the end of an outage that it was told of, or later where streams were held up: what they lost
// is known when they are read on. The caller holds mu.
func (t ofSinks) recovered(name string) {
	s := t.states.sinks[name]
	o := s.outage
	s.outage = outage{}
	if o.told.IsZero() {
		return
	}
	now := time.Now()
	s.timely = now.Add(now.Sub(o.began) + slow)
	s.back = &comeback{outage: o, at: now, waits: s.waits(), held: s.holding}
	t.tellBack(name, s, now)
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
