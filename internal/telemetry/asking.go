package telemetry

import "time"

// Hears is told that others can ask through the sink's broker, or why they cannot, each time that it is tried. The log
// is told once of each error.
func (t ofSinks) Hears(name string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := t.asking(name)
	was := next.LastError
	if next.LastError, next.LastErrorTime = "", (time.Time{}); err != nil {
		next.LastError, next.LastErrorTime = shownError(err), time.Now()
	}
	switch {
	case next.LastError == was:
	case err != nil:
		t.Logger.Warn("nobody can ask through the sink's broker; it is tried again", "sink", name, "error", err)
	default:
		t.Logger.Info("others can ask through the sink's broker again", "sink", name)
	}
	t.states.sinks[name].Asking = next
}

// Asked is told what somebody has asked through the sink's broker, and why that is refused, nil where it is followed.
// The log names one of each a minute, and how many there were: who may ask must not fill it.
func (t ofSinks) Asked(name, what string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next, s := t.asking(name), t.states.sinks[name]
	if err != nil {
		next.Refused++
		s.refused.note("sink", name, "asked", what, "error", err)
	} else {
		next.Followed++
		s.followed.note("sink", name, "asked", what)
	}
	t.metrics.signals.WithLabelValues(name, map[bool]string{true: "followed", false: "refused"}[err == nil]).Inc()
	s.Asking = next
	t.tellAsked(s, time.Now(), false)
}

// asking is a copy of what is known; the caller holds mu.
func (t *known) asking(name string) *askingState {
	if known := t.states.sinks[name].Asking; known != nil {
		next := *known
		return &next
	}
	return new(askingState)
}

// tellAsked tells the log what was asked through a sink's broker; the caller holds mu.
func (t *known) tellAsked(s *sinkState, now time.Time, last bool) {
	if n, example := s.followed.take(now, last); n > 0 {
		t.Logger.Info("followed what was asked through a broker", append(example, "questions", n)...)
	}
	if n, example := s.refused.take(now, last); n > 0 {
		t.Logger.Warn("refused what was asked through a broker", append(example, "questions", n)...)
	}
}
