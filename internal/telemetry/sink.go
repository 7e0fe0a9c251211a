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
