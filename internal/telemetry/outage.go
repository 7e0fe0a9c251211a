package telemetry

import (
	"time"
)

// patience is how long a sink that was open may repeat what it does before somebody is told: brokers that change their
// leader are routine. A word is how often the log is told of what lasts.
const (
	patience = 5 * time.Second
	word     = time.Minute
)

// outage is the time in which a sink does not take records, from its first error to its next batch.
type outage struct {
	began    time.Time // zero is none
	told     time.Time // the last line of it; zero is none yet
	attempts int
	gaps     int // that were known when it began
}

// fails notes an attempt that failed, and says whether the log is to be told: at once, or when it has lasted. The first
// line is its beginning, those after it come once a minute.
func (o *outage) fails(now time.Time, gaps int, atOnce bool) (first, again bool) {
	if o.began.IsZero() {
		*o = outage{began: now, gaps: gaps}
	}
	o.attempts++
	first = o.told.IsZero() && (atOnce || now.Sub(o.began) >= patience)
	again = !o.told.IsZero() && now.Sub(o.told) >= word
	if first || again {
		o.told = now
	}
	return first, again
}

// heard notes that the log was told something else of the outage: the next line comes a minute later.
func (o *outage) heard(now time.Time) {
	if !o.told.IsZero() {
		o.told = now
	}
}

// gapsOf are all gaps that a sink's consumers were told of; the caller holds mu.
func (t *known) gapsOf(s *sinkState) int {
	gaps := s.Gaps
	for _, stream := range t.states.streams {
		gaps += stream.Gaps
	}
	return gaps
}

// waits are what waits for a sink, for a log line.
func (s *sinkState) waits() []any {
	return []any{"waiting", int64(s.QueueRecords) + s.SpoolRecords, "waitingBytes", s.QueueBytes, "spoolBytes", s.SpoolBytes}
}

// troubled tells the log of a failed attempt, unless it has been told of the outage a moment ago; the caller holds mu.
func (t ofSinks) troubled(name, text string, atOnce bool, cause ...any) {
	now, s := time.Now(), t.states.sinks[name]
	first, again := s.outage.fails(now, t.gapsOf(s), atOnce)
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
