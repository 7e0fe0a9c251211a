package telemetry

import (
	"bytes"
	"errors"
	"log/slog"
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

// TestStatesAreMetricsOfTheCluster: one of each is 1.
func TestStatesAreMetricsOfTheCluster(t *testing.T) {
	telemetry := New(Options{
		ClusterName: "prod", Streams: streams()[:1], Sinks: []string{"bus", "lake"}, Logger: slog.New(slog.DiscardHandler),
		CountObjects: func(string, change.Stream) (int, error) { return 0, nil },
	})
	telemetry.StreamFailed(streams()[0], Failed, errors.New("forbidden"))
	telemetry.Stopped("bus", errors.New("no rights"))
	_, body := get(telemetry, "/metrics")
	for _, want := range []string{
		`kubecdc_stream_state{cluster="prod",resource="` + streams()[0].String() + `",state="failing"} 1`,
		`kubecdc_stream_state{cluster="prod",resource="` + streams()[0].String() + `",state="watching"} 0`,
		`kubecdc_sink_stopped{cluster="prod",sink="bus"} 1`, `kubecdc_sink_stopped{cluster="prod",sink="lake"} 0`,
		`kubecdc_sink_state{cluster="prod",sink="bus",state="stopped"} 1`, `kubecdc_sink_state{cluster="prod",sink="bus",state="open"} 0`,
		`kubecdc_build_info{cluster="prod",version=""} 1`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, "#") && !strings.Contains(line, `cluster="prod"`) {
			t.Errorf("without its cluster: %s", line)
		}
	}
}
