package telemetry

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestAStandbyIsReadyWhenItHasReadTheLog, or cannot.
func TestAStandbyIsReadyWhenItHasReadTheLog(t *testing.T) {
	var of Leadership
	shown := New(Options{Logger: slog.New(slog.DiscardHandler), Leadership: func() Leadership { return of }})
	for _, c := range []struct {
		standby *Standby
		status  int
		line    string
	}{
		{nil, 200, ""},
		{&Standby{}, 503, "[-]standby: this standby reads the log of the state for the first time\n"},
		{&Standby{LastError: "no route to host"}, 200, "[+]standby: cannot follow the log of the state: no route to host\n"},
		{&Standby{Whole: true}, 200, "[+]standby: follows the log of the state\n"},
	} {
		of.Standby = c.standby
		for _, path := range []string{"/readyz", "/readyz?verbose"} {
			answer := httptest.NewRecorder()
			shown.Handler().ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
			if answer.Code != c.status || path == "/readyz?verbose" && !strings.Contains(answer.Body.String(), c.line) {
				t.Errorf("%s of %+v answers %d %q", path, c.standby, answer.Code, answer.Body)
			}
		}
		if ready := shown.Status().Ready; ready != (c.status == 200) {
			t.Errorf("/statusz of %+v says ready: %v", c.standby, ready)
		}
	}
}
