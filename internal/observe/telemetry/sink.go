package telemetry

import (
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Queued is told a sink's backlog.
func (t *Telemetry) Queued(name string, b fifo.Levels) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.sinks[name]
	s.QueueRecords, s.QueueBytes, s.oldest = b.Records, b.Bytes, b.Oldest
	s.SpoolRecords, s.SpoolBytes = b.SpoolRecords, b.SpoolBytes
}

// Coalesced is told of records that newer ones of the same object made superfluous for the sink.
func (t *Telemetry) Coalesced(name string, records int) {
	t.metrics.coalesced.WithLabelValues(name).Add(float64(records))
}

// Opened is told that a sink is open, and how many messages its log had that are not written again.
func (t *Telemetry) Opened(name string, found int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.sinks[name]
	first := !s.opened
	s.State, s.opened = open, true
	if first || s.outage.began.IsZero() { // else whether it works the next batch tells
		t.Logger.Info("sink open", "sink", name, "alreadyWritten", found)
	}
	if s.QueueRecords == 0 && s.SpoolRecords == 0 { // there is no next batch
		t.recovered(name)
	}
}

// Written is told of a batch that is durable.
func (t *Telemetry) Written(name string, batch []*change.Record, took time.Duration) {
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
	var of *streamState
	var written prometheus.Counter
	for i, rec := range batch {
		if i == 0 || rec.Stream != batch[i-1].Stream { // in most batches all have one in common
			if of = t.states.stream(*rec.Stream); !of.over { // else its series are removed
				written = t.metrics.sinkRecords.WithLabelValues(name, of.resource)
			}
			count := of.counts[name]
			count.written = now
			of.counts[name] = count
		}
		if !of.over {
			written.Inc()
		}
	}
}

// SinkFailed is told of a sink's error; the sink is opened again.
func (t *Telemetry) SinkFailed(name string, err error) {
	t.metrics.sinkRetries.WithLabelValues(name, "reopen").Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.sinks[name]
	s.State, s.Trouble = failing, TroubleOf(err)
	t.troubled(name, "sink failed; reopening it", true, "error", err)
}

// Stopped is told of a sink's error that only a person can mend. The same error is logged once; that it is still there
// is told when the sink was tried again, a minute later at the earliest.
func (t *Telemetry) Stopped(name string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.sinks[name]
	if s.LastError == shownError(err) && !s.outage.told.IsZero() {
		t.troubled(name, "sink failed", true, "error", err)
	} else {
		s.outage.fails(time.Now(), true)
		s.goesOn()
		remedy := "fix the cause: the sink is retried within ten minutes, and at the next start"
		if sink.IsFenced(err) {
			remedy = "it is opened again at the next start only, since another writer has it"
		}
		t.Logger.Error("sink stopped, the others continue; "+remedy, "sink", name, "error", err)
	}
	s.State, s.Trouble = stopped, TroubleOf(err)
}

// Retried is told of an attempt that a sink repeats by itself. It is logged where that lasts. A routine answer of a
// broker that is given for a moment is only counted: the sink does not fail.
func (t *Telemetry) Retried(name, reason string, err error) {
	t.metrics.sinkRetries.WithLabelValues(name, reason).Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.sinks[name]
	t.troubled(name, "sink retries", !s.opened && !isRoutine(err), "reason", reason, "error", err)
	if s.LastError != shownError(err) && !(isRoutine(err) && s.outage.told.IsZero()) {
		s.State, s.Trouble = failing, TroubleOf(err)
	}
}

// isRoutine says whether brokers at work give such an answer.
func isRoutine(err error) bool {
	var answer interface{ Routine() bool }
	return errors.As(err, &answer) && answer.Routine()
}

// FailingSince is since when no sink takes records, zero while one does.
func (t *Telemetry) FailingSince() (since time.Time) {
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
func (t *Telemetry) Noticed(name, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.states.sinks[name].Note = text
	t.Logger.Info("sink "+text, "sink", name)
}

// Warned is told in what a sink may be meant otherwise.
func (t *Telemetry) Warned(name, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.states.sinks[name].Note = text
	t.Logger.Warn("sink's "+text, "sink", name)
}

// LabelTopics is told how many topics a sink has made because labels said so.
func (t *Telemetry) LabelTopics(name string, topics int) {
	t.metrics.labelTopics.WithLabelValues(name).Set(float64(topics))
}

// troubled tells the log of a failed attempt, unless it has been told of the outage a moment ago; the caller holds mu.
func (t *Telemetry) troubled(name, text string, atOnce bool, cause ...any) {
	now, s := time.Now(), t.states.sinks[name]
	first, again := s.outage.fails(now, atOnce)
	s.goesOn()
	line := append([]any{"sink", name}, cause...)
	switch {
	case first:
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

// recovered tells the log the end of an outage that it was told of. What that has lost, the lines of gaps say. The
// caller holds mu.
func (t *Telemetry) recovered(name string) {
	s := t.states.sinks[name]
	o := s.outage
	s.outage = outage{}
	if o.told.IsZero() {
		return
	}
	line := []any{"sink", name, "for", time.Since(o.began).Round(time.Second), "attempts", o.attempts}
	t.Logger.Info("sink accepts records again", append(line, s.waits()...)...)
}

// Hears is told that others can ask through the sink's broker, or why they cannot, each time that it is tried. The log
// is told once of each error.
func (t *Telemetry) Hears(name string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.sinks[name]
	if s.Asking == nil {
		s.Asking = new(askingState)
	}
	was := s.Asking.LastError
	s.Asking.Trouble = TroubleOf(err)
	switch {
	case s.Asking.LastError == was:
	case err != nil:
		t.Logger.Warn("nobody can ask through the sink's broker; it is tried again", "sink", name, "error", err)
	default:
		t.Logger.Info("others can ask through the sink's broker again", "sink", name)
	}
}

// Asked is told what somebody has asked through the sink's broker, and why that is refused, nil where it is followed.
// The log names one of each a minute, and how many there were: who may ask must not fill it.
func (t *Telemetry) Asked(name, what string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, result, level, line := t.states.sinks[name], "followed", slog.LevelInfo, []any{"sink", name, "asked", what}
	if s.Asking == nil {
		s.Asking = new(askingState)
	}
	if err != nil {
		result, level, line = "refused", slog.LevelWarn, append(line, "error", err)
		s.Asking.Refused++
	} else {
		s.Asking.Followed++
	}
	t.rarely(rare{name, level, result + " what was asked through a broker", "questions"}, line...)
	t.metrics.signals.WithLabelValues(name, result).Inc()
}

// Committed is told that something is part of the saved state.
func (t *Telemetry) Committed(took time.Duration) {
	t.metrics.commit.Observe(took.Seconds())
	t.mu.Lock()
	defer t.mu.Unlock()
	c, now := t.states.commit, time.Now()
	if c.LastError == "" {
		return
	}
	t.states.commit = commitState{SavedAgain: now}
	t.Logger.Info("state saved again", "for", now.Sub(c.FailingSince).Round(time.Second), "attempts", c.attempts, "since", c.FailingSince.UTC().Format(time.RFC3339))
}

// CommitFailed is told of a failed commit, which is tried again. It is logged once, until a commit succeeds: the text
// of a filling disk's error is another each time.
func (t *Telemetry) CommitFailed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.states.commit
	if c.LastError == "" {
		t.Logger.Error("state not saved; retrying", "error", err)
		*c = commitState{FailingSince: time.Now()}
	}
	c.Trouble = TroubleOf(err)
	c.attempts++
}

// AuditExpected makes the series of the audit webhook, at 0: a webhook of which nothing comes would have none, and an
// alert could not tell it from one that is not configured.
func (t *Telemetry) AuditExpected(outcomes, reasons []string) {
	for _, outcome := range outcomes {
		t.metrics.auditEvents.WithLabelValues(outcome)
	}
	for _, reason := range reasons {
		t.metrics.auditRefused.WithLabelValues(reason)
	}
}

// AuditEvent is told what became of an event of the audit webhook.
func (t *Telemetry) AuditEvent(outcome string) { t.metrics.auditEvents.WithLabelValues(outcome).Inc() }

// AuditMissing is told of a request whose begin the API server has told, and its end not.
func (t *Telemetry) AuditMissing(id string) {
	t.AuditEvent("missing")
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rarely(rare{
		"", slog.LevelWarn, "API server has told the begin of writes half an hour ago and not their end: it dropped the events, or ended itself; " +
			"docs/audit.md says why; the next such line follows in a minute at the earliest", "requests",
	}, "auditID", id)
}

// AuditRefused is told of a request, or of a connection, that the audit webhook refused.
func (t *Telemetry) AuditRefused(reason string, err error) {
	t.metrics.auditRefused.WithLabelValues(reason).Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rarely(rare{
		"", slog.LevelWarn, "audit webhook refused; the next such line follows in a minute at the earliest", "requests",
	}, "reason", reason, "error", err)
}

// The states of a resource's schema.
const (
	schemaRegistered = "registered" // records are written with it
	schemaBehind     = "behind"     // so they are, and a newer version is not registered
	schemaWaiting    = "waiting"    // records wait for it
	schemaStopped    = "stopped"    // until a person helps
)

// SchemaKnown is told with which schema a resource's records are written, and why not with a newer one; nil is that
// there is none.
func (t *Telemetry) SchemaKnown(name, resource string, schema sink.Schema, behind error) {
	now := schemaState{State: schemaRegistered, Subject: schema.Subject, ID: schema.ID}
	if behind != nil {
		now.State, now.LastError = schemaBehind, shownError(behind)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.setSchema(name, resource, now)
	line := []any{"sink", name, "resource", resource, "subject", schema.Subject, "id", schema.ID}
	switch {
	case behind != nil && before.LastError != now.LastError:
		t.Logger.Warn("schema cannot be brought up to date; records are written with the version that is known, and nothing is left out", append(line, "error", behind)...)
	case behind == nil && (before.State != schemaRegistered || before.ID != schema.ID):
		t.Logger.Info("schema registered", line...)
	}
}

// SchemaWaits is told that a resource's records wait for their schema, and why.
func (t *Telemetry) SchemaWaits(name, resource string, why error, forGood bool) {
	now := schemaState{State: schemaWaiting, LastError: shownError(why)}
	if forGood {
		now.State = schemaStopped
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.setSchema(name, resource, now)
	line := []any{"sink", name, "resource", resource, "error", why}
	switch {
	case before.State == now.State && (!forGood || before.LastError == now.LastError):
	case forGood:
		t.Logger.Error("stream stopped for this sink: its schema is refused; the others continue; fix the cause: it is tried again within a minute", line...)
	default:
		t.rarely(rare{name, slog.LevelWarn, "stream waits for its schema; others that have theirs continue", "streams"}, line...)
	}
}

// SchemaReplaced is told that a registry has lost an id that it had then.
func (t *Telemetry) SchemaReplaced(name, resource string, schema sink.Schema, confirmed time.Time) {
	t.metrics.schemasReplaced.WithLabelValues(name).Inc()
	t.Logger.Error("the schema registry was replaced, or a version deleted: records since then have an id that it may know as another schema; they are read with what exporter schema show prints, and exporter snapshot sends the objects again",
		"sink", name, "resource", resource, "subject", schema.Subject, "id", schema.ID, "confirmed", confirmed.UTC().Format(time.RFC3339))
}

// SchemaForgotten is told that nothing is written of the resource.
func (t *Telemetry) SchemaForgotten(name, resource string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.states.sinks[name].Schemas, resource)
}

// setSchema returns what it was before; the caller holds mu.
func (t *Telemetry) setSchema(name, resource string, to schemaState) (before schemaState) {
	s := t.states.sinks[name]
	if s.Schemas == nil {
		s.Schemas = map[string]schemaState{}
	}
	before = s.Schemas[resource]
	if to.Since = time.Now(); before.State == to.State {
		to.Since = before.Since
	}
	s.Schemas[resource] = to
	return before
}
