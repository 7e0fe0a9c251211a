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

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// TestAFailingSinkIsLoggedOnce until it takes a batch, however often it is opened meanwhile.
func TestAFailingSinkIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	telemetry := quiet()
	telemetry.Logger = slog.New(slog.NewTextHandler(&log, nil))
	lines := func() int { return strings.Count(log.String(), "\n") }
	telemetry.Queued("bus", fifo.Levels{Records: 7, Bytes: 70})
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
	if got := lines(); got != 4 {
		t.Errorf("%d lines, want the end of the failure, and the same one after a batch:\n%.1000s", got, log.String())
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

// TestReadinessNamesEachCheck, where somebody asks for it.
func TestReadinessNamesEachCheck(t *testing.T) {
	telemetry := quiet()
	telemetry.Watching(streams()[0], "7")
	telemetry.StreamFailed(streams()[1], errors.New("forbidden"))
	telemetry.Opened("bus", 0)
	ask := func() (int, string) {
		answer := httptest.NewRecorder()
		telemetry.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz?verbose", nil))
		return answer.Code, answer.Body.String()
	}
	code, text := ask()
	for _, want := range []string{"[+]stream " + streams()[0].String() + ": watching\n", "[+]stream " + streams()[1].String() + ": failing: forbidden\n",
		"[+]sink bus: open\n", "[+]state: saved\n", "\nready\n"} {
		if code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%d without %q:\n%s", code, want, text)
		}
	}
	telemetry.Stopped("bus", errors.New("no rights"))
	if code, text := ask(); code != http.StatusServiceUnavailable || !strings.Contains(text, "[-]sink bus: sink bus is stopped: no rights\n") || !strings.Contains(text, "\nnot ready\n") {
		t.Errorf("%d:\n%s", code, text)
	}
}

// TestStatesAreMetricsOfTheCluster: one of each is 1.
func TestStatesAreMetricsOfTheCluster(t *testing.T) {
	telemetry := New(Options{
		ClusterName: "prod", Streams: streams()[:1], Sinks: []string{"bus"}, Logger: slog.New(slog.DiscardHandler),
		CountObjects: func(string, change.Stream) (int, error) { return 0, nil },
	})
	telemetry.StreamFailed(streams()[0], errors.New("forbidden"))
	telemetry.Stopped("bus", errors.New("no rights"))
	answer := httptest.NewRecorder()
	telemetry.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		`kubecdc_stream_state{cluster="prod",resource="` + streams()[0].String() + `",state="failing"} 1`,
		`kubecdc_stream_state{cluster="prod",resource="` + streams()[0].String() + `",state="watching"} 0`,
		`kubecdc_sink_state{cluster="prod",sink="bus",state="stopped"} 1`, `kubecdc_sink_state{cluster="prod",sink="bus",state="open"} 0`,
		`kubecdc_build_info{cluster="prod",version=""} 1`,
	} {
		if !strings.Contains(answer.Body.String(), want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	for line := range strings.Lines(answer.Body.String()) {
		if !strings.HasPrefix(line, "#") && !strings.Contains(line, `cluster="prod"`) {
			t.Errorf("without its cluster: %s", line)
		}
	}
}
