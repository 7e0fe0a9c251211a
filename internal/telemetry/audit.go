package telemetry

import "time"

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
