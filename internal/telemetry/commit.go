package telemetry

import (
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Committed is told of what is saved.
func (t ofState) Committed(batch []*change.Record, marks map[string]sink.Mark, took time.Duration) {
	t.metrics.commit.Observe(took.Seconds())
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.states.commit = commitState{}
	for stream, part := range byStream(batch) {
		s := t.states.stream(*stream)
		for _, rec := range part {
			s.committed(rec, now)
		}
	}
	for name, mark := range marks {
		t.states.sinks[name].Mark = string(mark)
	}
}

// CommitFailed is told of a failed commit, which is tried again. It is logged once, until a commit succeeds: the text
// of a filling disk's error is another each time.
func (t ofState) CommitFailed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.states.commit.LastError == "" {
		t.Logger.Error("state not saved; retrying", "error", err)
	}
	t.states.commit = commitState{LastError: err.Error(), LastErrorTime: now()}
}
