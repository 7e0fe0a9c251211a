package telemetry

import (
	"net/http"
	"net/http/httptest"
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
		answer := httptest.NewRecorder()
		telemetry.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for _, line := range []string{`kubecdc_audit_events_total{outcome="proven"} 0`, `kubecdc_audit_refused_total{reason="busy"} 0`} {
			if strings.Contains(answer.Body.String(), line+"\n") != expected {
				t.Errorf("expected %t: the line %s is there or not, wrongly", expected, line)
			}
		}
	}
}
