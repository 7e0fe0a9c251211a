package telemetry

import (
	"log/slog"
	"strings"
	"testing"
)

// TestASilentWebhookHasSeries, and one that is not configured has none: an alert tells them apart by that.
func TestASilentWebhookHasSeries(t *testing.T) {
	for _, expected := range []bool{false, true} {
		telemetry := quiet()
		if expected {
			telemetry.AuditExpected([]string{"proven"}, []string{"busy"})
		}
		_, body := get(telemetry, "/metrics")
		for _, line := range []string{`kubecdc_audit_events_total{outcome="proven"} 0`, `kubecdc_audit_refused_total{reason="busy"} 0`} {
			if strings.Contains(body, line+"\n") != expected {
				t.Errorf("expected %t: the line %s is there or not, wrongly", expected, line)
			}
		}
	}
}

// TestAMissingEventIsCounted, and the log names the first of them.
func TestAMissingEventIsCounted(t *testing.T) {
	var log strings.Builder
	telemetry := quiet()
	telemetry.Logger = slog.New(slog.NewTextHandler(&log, nil))
	telemetry.AuditMissing("first")
	telemetry.AuditMissing("second")
	_, body := get(telemetry, "/metrics")
	if line := `kubecdc_audit_events_total{outcome="missing"} 2`; !strings.Contains(body, line+"\n") {
		t.Errorf("the line %s is missing", line)
	}
	if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "auditID=first") {
		t.Errorf("the log says %s", log.String())
	}
}
