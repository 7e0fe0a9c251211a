package telemetry

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// get asks the process for a page.
func get(t *Telemetry, path string) (code int, body string) {
	answer := httptest.NewRecorder()
	t.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	return answer.Code, answer.Body.String()
}

// TestReadinessIsToldWithEachCheck where somebody asks for it: of a sink that was never open or is stopped, of
// credentials that only a person can renew, and of a standby that does not know the state. Nothing else is unready.
func TestReadinessIsToldWithEachCheck(t *testing.T) {
	const refusal = "the API server refuses the credentials: Unauthorized: renew the exporter's token or certificate\n"
	var of Leadership
	tel := New(Options{
		Streams: []change.Stream{streamOf("pods"), streamOf("nodes")}, Sinks: []string{"bus"}, Logger: slog.New(slog.DiscardHandler),
		CountObjects: func(string, change.Stream) (int, error) { return 0, nil }, Leadership: func() Leadership { return of },
	})
	standby := func(is Standby) step { return func(*stage) { of.Standby = &is } }
	s := newStage(tel)
	for i, c := range []struct {
		do      []step
		want    string // of /readyz, "" is that it is ready
		verbose string // that each check tells, with others
	}{
		{[]step{watched("pods", "7"), watched("nodes", "7"), retried()}, "sink bus is not open: nobody listens\n", "\nnot ready\n"},
		{[]step{opened(), func(s *stage) { s.SinkFailed("bus", errors.New("no room")) }}, "", "[+]sink bus: failing: no room\n"},
		{[]step{written(), failed("nodes", "forbidden")}, "", "[+]stream nodes: failing: forbidden\n[+]stream pods: watching\n[+]sink bus: open\n[+]state: saved\n"},
		{[]step{stops("no rights")}, "sink bus is stopped: no rights\n", "[-]sink bus: sink bus is stopped: no rights\n"},
		{[]step{opened()}, "", "\nready\n"},
		{[]step{cutOff("pods", Refused, "Unauthorized")}, refusal, refusal},
		{[]step{cutOff("pods", Refused, "Unauthorized")}, refusal, refusal},
		{[]step{failed("pods", "connection refused")}, "", ""},
		{[]step{cutOff("pods", Refused, "Unauthorized")}, refusal, refusal},
		{[]step{watched("pods", "100")}, "", ""},
		{[]step{standby(Standby{})}, "this standby reads the log of the state for the first time\n", "[-]standby: this standby reads"},
		{[]step{standby(Standby{LastError: "no route to host"})}, "", "[+]standby: cannot follow the log of the state: no route to host\n"},
		{[]step{standby(Standby{Whole: true})}, "", "[+]standby: follows the log of the state\n"},
	} {
		times(1, c.do...)(s)
		code, body := get(tel, "/readyz")
		verboseCode, verbose := get(tel, "/readyz?verbose")
		ready := c.want == ""
		if (code == http.StatusOK) != ready || !ready && (code != http.StatusServiceUnavailable || body != c.want) ||
			verboseCode != code || !strings.Contains(verbose, c.verbose) || tel.Status().Ready != ready {
			t.Errorf("step %d: /readyz answers %d %q, want %q, and /readyz?verbose %d\n%swant %q in it", i, code, body, c.want, verboseCode, verbose, c.verbose)
		}
	}
	if _, body := get(tel, "/healthz"); body != "ok\n" {
		t.Errorf("/healthz says %q", body)
	}
}
