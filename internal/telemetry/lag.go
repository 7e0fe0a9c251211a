package telemetry

import "time"

// tellBehind tells the log once that a sink is behind, once that it has caught up, and once that its spool fills; the
// caller holds mu. A sink that fails has lines of its own, and so has one that holds streams up.
func (t *known) tellBehind(name string, s *sinkState, now time.Time) {
	t.tellSpool(name, s)
	late := s.isLate(now)
	switch {
	case s.State != open || !s.outage.began.IsZero():
	case s.behind.since.IsZero() && late && !s.holding:
		s.behind.since = s.oldest
		line := []any{"sink", name, "since", s.oldest.UTC().Format(time.RFC3339)}
		t.Logger.Warn("sink is behind: records come faster than it takes them", append(line, s.waits()...)...)
	case !s.behind.since.IsZero() && (s.oldest.IsZero() || now.Sub(s.oldest) < patience):
		t.Logger.Info("sink has caught up", "sink", name, "for", now.Sub(s.behind.since).Round(time.Second))
		s.behind.since = time.Time{}
	}
}

// tellSpool tells when half of a spool is used, and again only when most of that was free meanwhile.
func (t *known) tellSpool(name string, s *sinkState) {
	limit := t.Spools[name]
	switch {
	case limit == 0 || s.SpoolBytes < limit/4:
		s.behind.spool = false
	case s.SpoolBytes >= limit/2 && !s.behind.spool:
		s.behind.spool = true
		t.Logger.Warn("spool fills; when it is full, the sink holds its streams up: bring the sink back, or raise queue.spool",
			"sink", name, "spoolBytes", s.SpoolBytes, "limit", limit, "waiting", int64(s.QueueRecords)+s.SpoolRecords)
	}
}
