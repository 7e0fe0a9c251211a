package telemetry

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A sink that is stopped is named where somebody looks, until it is open again; the log says it once.
func TestAStoppedSinkIsNamed(t *testing.T) {
	var log strings.Builder
	telemetry := New(Options{Sinks: []string{"bus", "lake"}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	get := func(path string) string {
		answer := httptest.NewRecorder()
		telemetry.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		return answer.Body.String()
	}
	telemetry.Opened("bus", 0)
	telemetry.Opened("lake", 0)
	for range 2 {
		telemetry.Stopped("bus", errors.New("deliver to sink bus: the password is wrong"))
	}
	if got := get("/readyz"); got != "sink bus is stopped: deliver to sink bus: the password is wrong\n" {
		t.Errorf("/readyz says %q", got)
	}
	metrics := get("/metrics")
	for _, want := range []string{`kubecdc_sink_stopped{sink="bus"} 1`, `kubecdc_sink_stopped{sink="lake"} 0`} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("no line %s", want)
		}
	}
	if s := telemetry.Status().Sinks["bus"]; s.State != stopped || !strings.Contains(s.LastError, "password") || strings.Count(log.String(), "sink stopped") != 1 {
		t.Errorf("status %+v, log %s", s, log.String())
	}
	telemetry.Opened("bus", 0)
	if got := get("/readyz") + get("/healthz"); got != "ok\nok\n" {
		t.Errorf("when it is open again: %q", got)
	}
}
