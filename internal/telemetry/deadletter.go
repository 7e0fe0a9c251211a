package telemetry

import (
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Rejected is told of a record that a sink will never take: a gap of that sink. The log names one a minute, and how
// many there were: who may make objects must not fill it.
func (t ofSinks) Rejected(name string, rec *change.Record, reason string, err error) {
	t.metrics.sinkRejected.WithLabelValues(name, reason).Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.sinks[name]
	s.rejected.note(append(ofObject(name, rec), "reason", reason, "error", err)...)
	t.tellRejected(s, time.Now(), false)
	t.noteGap(*rec.Stream, &gapState{
		Reason: change.Policy, Stream: rec.Stream.String(), Sinks: []string{name}, Object: rec.Key.Shown(), Rejected: reason,
		From: rec.ResourceVersion, To: rec.ResourceVersion, Since: rec.Received, Time: time.Now(),
	})
}

// NotKept is told why a dead letter could not be kept: the sink waits for it. The same error is logged once, until a
// batch is written.
func (t ofSinks) NotKept(name string, err error) {
	t.metrics.sinkRetries.WithLabelValues(name, "dead_letter").Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.sinks[name]
	if s.LastError != shownError(err) {
		t.Logger.Error("dead letter cannot be kept; the sink waits and retries", "sink", name, "error", err)
	}
	s.State, s.LastError, s.LastErrorTime = failing, shownError(err), time.Now()
}

// Dropped is told that a rejected record was not kept. It is logged once.
func (t ofSinks) Dropped(name string) {
	t.metrics.lettersDropped.WithLabelValues(name).Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.states.sinks[name]; !s.lettersFull {
		s.lettersFull = true
		t.Logger.Error("dead letters have reached their limit; rejected records are not kept any more, and their gap records say so: "+
			"send or delete letters, or raise deadLetter.bytes of the sink", "sink", name)
	}
}

// Trimmed is told of a durable record of which something was cut. The log names one a minute, and how many there were.
func (t ofSinks) Trimmed(name string, rec *change.Record) {
	t.metrics.sinkTrimmed.WithLabelValues(name).Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.sinks[name]
	s.trimmed.note(append(ofObject(name, rec), "trimmed", rec.Remarks.LeftOut())...)
	t.tellTrimmed(s, time.Now(), false)
}

// Replayed is told of a dead letter that was sent again, or why it was not.
func (t ofSinks) Replayed(name string, rec *change.Record, err error) {
	if err != nil {
		t.Logger.Warn("dead letter not sent again", append(ofObject(name, rec), "letter", rec.Replay.Letter, "error", err)...)
		return
	}
	t.metrics.replayed.WithLabelValues(name).Inc()
	t.mu.Lock()
	t.resolve(name, rec)
	t.mu.Unlock()
	t.Logger.Info("dead letter sent again", append(ofObject(name, rec), "letter", rec.Replay.Letter)...)
}
