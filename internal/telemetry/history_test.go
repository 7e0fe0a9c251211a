package telemetry

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestI4TheEndOfHistoryIsSeenComing: for each resource that waits, and no health check fails for it.
func TestI4TheEndOfHistoryIsSeenComing(t *testing.T) {
	tel := newTelemetry(new(bytes.Buffer))
	name := tel.Streams[0].String()
	for _, c := range []struct {
		waits     bool
		age       time.Duration
		least, to float64
	}{
		{false, 0, 300, 300},
		{true, 2 * time.Minute, 120, 181},
		{true, time.Hour, 0, 0},
	} {
		tel.Follow(func() map[string]time.Time {
			if !c.waits {
				return nil
			}
			return map[string]time.Time{name: time.Now().Add(-c.age)}
		})
		if got := tel.Status().Streams[name].HistoryLeftSeconds; got < c.least || got > c.to {
			t.Errorf("a record waits: %t, for %v: %v s of history are left, want %v to %v", c.waits, c.age, got, c.least, c.to)
		}
	}
	for path, want := range map[string]string{"/metrics": `kubecdc_history_left_seconds{resource="` + name + `"} 0`, "/healthz": "ok"} {
		answer := httptest.NewRecorder()
		tel.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		if !strings.Contains(answer.Body.String(), want) {
			t.Errorf("%s says %s, want %s in it", path, answer.Body, want)
		}
	}
}
