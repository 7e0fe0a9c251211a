package telemetry

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/fifo"
)

// TestI4TheHistoryOfWhatCannotBeReadRunsOut: with the time since a watch was open, whether or not a sink waits, and not
// for one that is open again.
func TestI4TheHistoryOfWhatCannotBeReadRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tel := newTelemetry(new(bytes.Buffer))
		left := func() float64 { return tel.Status().Streams["pods"].HistoryLeftSeconds }
		tel.Watching(pods(), "100")
		time.Sleep(10 * time.Minute)
		if got := left(); got != mostHistory.Seconds() {
			t.Errorf("of a quiet stream %v s are left, want all", got)
		}
		tel.StreamFailed(pods(), Failed, errors.New("connection refused"))
		time.Sleep(100 * time.Second)
		tel.StreamFailed(pods(), Refused, errors.New("Unauthorized"))
		for _, want := range []float64{200, 100, 0, 0} {
			if got := left(); got != want {
				t.Errorf("%v s are left, want %v", got, want)
			}
			time.Sleep(100 * time.Second)
		}
		now := time.Now()
		waits(tel, pods(), now.Add(-time.Minute))
		if tel.Watching(pods(), "100"); left() != 240 {
			t.Errorf("%v s are left of what a sink holds up for a minute, want 240", left())
		}
	})
}

// TestI4HowMuchIsForgottenFollowsWhatWasReadBefore: a resource that cannot be read does not become a quiet one, and no
// sink is named for it that has just been given a record.
func TestI4HowMuchIsForgottenFollowsWhatWasReadBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tel, log := historyRig(pods(), 10, time.Now())
		whole := tel.Status().Streams["pods"].HistorySeconds
		tel.StreamFailed(pods(), Failed, errors.New("connection refused"))
		time.Sleep(5 * time.Minute)
		sink, now := tel.Sinks[0], time.Now()
		tel.Queued(sink, fifo.Levels{Records: 1, Oldest: now})
		waits(tel, pods(), now)
		log.Reset()
		tel.CheckHistory()
		if s := tel.Status().Streams["pods"]; s.HistorySeconds != whole || s.HistoryLeftSeconds != 0 || s.HeldBy != nil || log.Len() > 0 {
			t.Errorf("%v of %v s are left, want 0 of %v; held by %v; the log says %s", s.HistoryLeftSeconds, s.HistorySeconds, whole, s.HeldBy, log)
		}
	})
}
