package telemetry

import (
	"errors"
	"iter"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// Queued is told a sink's backlog.
func (t ofSinks) Queued(name string, b fifo.Levels) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.sinks[name]
	s.QueueRecords, s.QueueBytes, s.oldest = b.Records, b.Bytes, b.Oldest
	s.SpoolRecords, s.SpoolBytes = b.SpoolRecords, b.SpoolBytes
}

// Coalesced is told of records that newer ones of the same object made superfluous for the sink.
func (t ofSinks) Coalesced(name string, records int) {
	t.metrics.coalesced.WithLabelValues(name).Add(float64(records))
}

// Opened is told that a sink is open.
func (t ofSinks) Opened(name string, found int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.sinks[name]
	first := !s.opened
	s.State, s.opened = open, true
	if first || s.outage.began.IsZero() { // else whether it works the next batch tells
		t.Logger.Info("sink open", "sink", name, "foundAfterMark", found)
	}
	if s.QueueRecords == 0 && s.SpoolRecords == 0 { // there is no next batch
		t.recovered(name)
	}
}

// Written is told of a batch that is durable.
func (t ofSinks) Written(name string, batch []*change.Record, took time.Duration) {
	t.metrics.sinkWrite.WithLabelValues(name).Observe(took.Seconds())
	delivery := t.metrics.delivery.WithLabelValues(name)
	now := time.Now()
	for _, rec := range batch {
		delivery.Observe(now.Sub(rec.Received).Seconds())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.sinks[name]
	t.recovered(name)
	s.State, s.LastError = open, ""
	s.Records += len(batch)
	for stream, part := range byStream(batch) {
		of := t.states.stream(*stream)
		if !of.over { // else its series are removed
			t.metrics.sinkRecords.WithLabelValues(name, of.resource).Add(float64(len(part)))
		}
		for _, rec := range part {
			of.count(name, rec)
		}
	}
}

// byStream yields the parts of a batch whose records have their stream in common; in most batches all have.
func byStream(batch []*change.Record) iter.Seq2[*change.Stream, []*change.Record] {
	return func(yield func(*change.Stream, []*change.Record) bool) {
		for len(batch) > 0 {
			stream, n := batch[0].Stream, 1
			for n < len(batch) && batch[n].Stream == stream {
				n++
			}
			if !yield(stream, batch[:n]) {
				return
			}
			batch = batch[n:]
		}
	}
}

// SinkFailed is told of a sink's error; the sink is opened again.
func (t ofSinks) SinkFailed(name string, err error) {
	t.metrics.sinkRetries.WithLabelValues(name, "reopen").Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.sinks[name]
	s.State, s.LastError, s.LastErrorTime = failing, shownError(err), time.Now()
	t.troubled(name, "sink failed; reopening it", true, "error", err)
}

// Stopped is told of a sink's error that only a person can mend. The same error is logged once; that it is still there
// is told when the sink was tried again, a minute later at the earliest.
func (t ofSinks) Stopped(name string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.sinks[name]
	if s.LastError == shownError(err) && !s.outage.told.IsZero() {
		t.troubled(name, "sink failed", true, "error", err)
	} else {
		t.tellBackNow(name, s)
		s.outage.fails(time.Now(), t.gapsOf(s), true)
		s.goesOn()
		t.Logger.Error("sink stopped, the others continue; fix the cause: the sink is retried within ten minutes, and at the next start", "sink", name, "error", err)
	}
	s.State, s.LastError, s.LastErrorTime = stopped, shownError(err), time.Now()
}

// Retried is told of an attempt that a sink repeats by itself. It is logged where that lasts. A routine answer of a
// broker that is given for a moment is only counted: the sink does not fail.
func (t ofSinks) Retried(name, reason string, err error) {
	t.metrics.sinkRetries.WithLabelValues(name, reason).Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.sinks[name]
	t.troubled(name, "sink retries", !s.opened && !isRoutine(err), "reason", reason, "error", err)
	if s.LastError != shownError(err) && !(isRoutine(err) && s.outage.told.IsZero()) {
		s.State, s.LastError, s.LastErrorTime = failing, shownError(err), time.Now()
	}
}

// isRoutine says whether brokers at work give such an answer.
func isRoutine(err error) bool {
	var answer interface{ Routine() bool }
	return errors.As(err, &answer) && answer.Routine()
}

// FailingSince is since when no sink takes records, zero while one does.
func (t ofSinks) FailingSince() (since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.states.sinks {
		if s.outage.began.IsZero() {
			return time.Time{}
		}
		if s.outage.began.After(since) {
			since = s.outage.began
		}
	}
	return since
}

// Noticed is told how a sink works, where there is a choice, and why.
func (t ofSinks) Noticed(name, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.states.sinks[name].Note = text
	t.Logger.Info("sink "+text, "sink", name)
}

// Warned is told in what a sink may be meant otherwise.
func (t ofSinks) Warned(name, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.states.sinks[name].Note = text
	t.Logger.Warn("sink's "+text, "sink", name)
}

// LabelTopics is told how many topics a sink has made because labels said so.
func (t ofSinks) LabelTopics(name string, topics int) {
	t.metrics.labelTopics.WithLabelValues(name).Set(float64(topics))
}

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

// Committed is told that something is part of the saved state.
func (t ofState) Committed(took time.Duration) {
	t.metrics.commit.Observe(took.Seconds())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.savedAgain(time.Now())
}

// savedAgain tells the log that the state is saved, where it could not be; the caller holds mu.
func (t *known) savedAgain(now time.Time) {
	c := t.states.commit
	if c.LastError == "" {
		return
	}
	t.states.commit = commitState{SavedAgain: now}
	t.Logger.Info("state saved again", "for", now.Sub(c.FailingSince).Round(time.Second), "attempts", c.attempts, "since", c.FailingSince.UTC().Format(time.RFC3339))
}

// CommitFailed is told of a failed commit, which is tried again. It is logged once, until a commit succeeds: the text
// of a filling disk's error is another each time.
func (t ofState) CommitFailed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.states.commit
	if c.LastErrorTime = now(); c.LastError == "" {
		t.Logger.Error("state not saved; retrying", "error", err)
		*c = commitState{FailingSince: *c.LastErrorTime, LastErrorTime: c.LastErrorTime}
	}
	c.LastError = shownError(err)
	c.attempts++
}

// AuditExpected makes the series of the audit webhook, at 0: a webhook of which nothing comes would have none, and an
// alert could not tell it from one that is not configured.
func (t ofSinks) AuditExpected(outcomes, reasons []string) {
	for _, outcome := range outcomes {
		t.metrics.auditEvents.WithLabelValues(outcome)
	}
	for _, reason := range reasons {
		t.metrics.auditRefused.WithLabelValues(reason)
	}
}

// AuditEvent is told what became of an event of the audit webhook.
func (t ofSinks) AuditEvent(outcome string) { t.metrics.auditEvents.WithLabelValues(outcome).Inc() }

// AuditMissing is told of a request whose begin the API server has told, and its end not.
func (t ofSinks) AuditMissing(id string) {
	t.AuditEvent("missing")
	t.mu.Lock()
	defer t.mu.Unlock()
	t.states.auditMissing.note("auditID", id)
	if n, example := t.states.auditMissing.take(time.Now(), false); n > 0 {
		t.Logger.Warn("API server has told the begin of writes half an hour ago and not their end: it dropped the events, or ended itself; "+
			"docs/audit.md says why; the next such line follows in a minute at the earliest", append([]any{"requests", n}, example...)...)
	}
}

// AuditRefused is told of a request, or of a connection, that the audit webhook refused.
func (t ofSinks) AuditRefused(reason string, err error) {
	t.metrics.auditRefused.WithLabelValues(reason).Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.states.auditRefused.note("reason", reason, "error", err)
	if n, example := t.states.auditRefused.take(time.Now(), false); n > 0 {
		t.Logger.Warn("audit webhook refused; the next such line follows in a minute at the earliest", append([]any{"requests", n}, example...)...)
	}
}
