package telemetry

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// TestAnOutageIsAStory: a broker of three is away for three minutes, twice, and the sink asks all of them every two
// seconds. The log says when it began, once a minute that it lasts, what waits, when it is over and what was lost.
func TestAnOutageIsAStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		telemetry := quiet()
		telemetry.Logger = slog.New(slog.NewTextHandler(&log, nil))
		telemetry.Opened("bus", 0)
		for outage := range 2 {
			began := time.Now()
			for i := 0; time.Since(began) < 3*time.Minute; i++ {
				telemetry.Queued("bus", fifo.Levels{Records: 10 * i, Bytes: 1000 * i, SpoolRecords: 5, SpoolBytes: 500})
				telemetry.Retried("bus", "unreachable", fmt.Errorf("broker %d does not answer", i%3))
				time.Sleep(2 * time.Second)
			}
			if outage == 1 {
				telemetry.states.sinks["bus"].Gaps++
			}
			telemetry.Written("bus", records(1), time.Millisecond)
			time.Sleep(time.Hour)
		}
		text := log.String()
		if lines := strings.Count(text, "\n"); lines != 9 {
			t.Errorf("%d lines, want the opening and twice a beginning, two minutes and an end:\n%s", lines, text)
		}
		for _, want := range []string{
			`msg="sink retries" sink=bus reason=unreachable error="broker 0 does not answer" waiting=35 waitingBytes=3000 spoolBytes=500`,
			`msg="sink still fails" sink=bus reason=unreachable error="broker 0 does not answer" since=2000-01-01T00:00:00Z for=1m6s attempts=34 streamsHeldUp=0 waiting=335`,
			`msg="sink accepts records again" sink=bus for=3m0s attempts=90 lost=nothing waiting=895`,
			`msg="sink accepts records again" sink=bus for=3m0s attempts=90 lost="intermediate states: the line of the gap tells which" waiting=895`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("not told: %s\n%s", want, text)
			}
		}
	})
}

// TestRoutineRetriesAreCountedOnly: an election takes a moment.
func TestRoutineRetriesAreCountedOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		telemetry := quiet()
		telemetry.Opened("bus", 0)
		telemetry.Logger = slog.New(slog.NewTextHandler(&log, nil))
		for range 100 {
			telemetry.Retried("bus", "not_leader", errors.New("the leader has changed"))
			time.Sleep(time.Second)
			telemetry.Written("bus", records(1), time.Millisecond)
		}
		if log.Len() > 0 {
			t.Errorf("told:\n%s", &log)
		}
	})
}

// TestMisshapenObjectsAreCounted, and one of them is named.
func TestMisshapenObjectsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		telemetry, stream := quiet(), streams()[0]
		telemetry.Logger = slog.New(slog.NewTextHandler(&log, nil))
		for i := range 1000 {
			telemetry.ShapeFailed(&change.Record{Stream: &stream, Key: change.Key{Name: fmt.Sprint("web-", i)}}, errors.New("no such key: x"))
			time.Sleep(100 * time.Millisecond)
		}
		text := log.String()
		if strings.Count(text, "\n") != 2 || !strings.Contains(text, "objects=1 ") || !strings.Contains(text, "objects=600 ") || !strings.Contains(text, "object=web-600 ") {
			t.Errorf("told:\n%s", text)
		}
	})
}
