package telemetry

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestAFailingSinkIsLoggedOnce until it takes a batch, however often it is opened meanwhile.
func TestAFailingSinkIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	telemetry := quiet()
	telemetry.Logger = slog.New(slog.NewTextHandler(&log, nil))
	lines := func() int { return strings.Count(log.String(), "\n") }
	for range 1000 {
		telemetry.SinkFailed("bus", errors.New("no room"))
		telemetry.Opened("bus", 0)
	}
	if got := lines(); got != 2 {
		t.Errorf("%d lines, want one of the failure and one of the first opening:\n%.1000s", got, log.String())
	}
	telemetry.SinkFailed("bus", errors.New("no rights"))
	telemetry.Opened("bus", 0)
	telemetry.Written("bus", records(1), time.Millisecond)
	telemetry.SinkFailed("bus", errors.New("no rights"))
	if got := lines(); got != 5 {
		t.Errorf("%d lines, want another failure, another opening, and the same failure after a batch:\n%.1000s", got, log.String())
	}
}

// TestASinkThatWasNeverOpenIsNotReady, also when it is being retried.
func TestASinkThatWasNeverOpenIsNotReady(t *testing.T) {
	telemetry := quiet()
	for _, stream := range streams() {
		telemetry.Watching(stream, "7")
	}
	ready := func() int {
		answer := httptest.NewRecorder()
		telemetry.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		return answer.Code
	}
	telemetry.Retried("bus", "unreachable", errors.New("nobody listens there"))
	if got := ready(); got != http.StatusServiceUnavailable {
		t.Errorf("/readyz answers %d before the sink was open", got)
	}
	telemetry.Opened("bus", 0)
	telemetry.SinkFailed("bus", errors.New("no room"))
	if got := ready(); got != http.StatusOK {
		t.Errorf("/readyz answers %d when a sink fails that was open", got)
	}
}
