package telemetry

import "time"

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
