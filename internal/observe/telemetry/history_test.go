package telemetry

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/listener"
)

// TestHistoryIsThatOfTheServersRing: 75 s at least, 300 s where it is quiet, and 102,400 changes at most.
func TestHistoryIsThatOfTheServersRing(t *testing.T) {
	for perSecond, want := range map[float64]float64{0: 300, 0.3: 300, 1: 100, 2: 100, 2.7: 400 / 2.7, 100: 128, 1365: 102400. / 1365, 5000: 20.48, 51200: 2} {
		if got := historyOf(perSecond).Seconds(); math.Abs(got-want) > 0.01 {
			t.Errorf("at %v changes a second: %v s, want %v", perSecond, got, want)
		}
	}
	for perSecond := 0.01; perSecond < 1365; perSecond *= 1.1 {
		if got := historyOf(perSecond); got < leastHistory || got > mostHistory {
			t.Errorf("at %v changes a second: %v", perSecond, got)
		}
	}
}

// TestAPaceIsThatOfTheChanges, not of a moment, and is forgotten when it is quiet.
func TestAPaceIsThatOfTheChanges(t *testing.T) {
	var p pace
	now := time.Now()
	for range 1000 {
		p.note(now)
	}
	if got := p.perSecond(now); got != 1000./60 {
		t.Errorf("1000 changes at once are %v a second, want those of a minute", got)
	}
	for range 200 * 180 {
		now = now.Add(5 * time.Millisecond)
		p.note(now)
	}
	if got := p.perSecond(now); got < 190 || got > 220 {
		t.Errorf("200 changes a second are %v", got)
	}
	if got := p.perSecond(now.Add(10 * time.Minute)); got > 40 {
		t.Errorf("after ten quiet minutes there are %v changes a second", got)
	}
	if got := p.perSecond(now.Add(-time.Hour)); got > 220 {
		t.Errorf("in the past there were %v changes a second", got)
	}
}

// TestNoSeriesOfAStreamComesBackThatIsOver: its last records are written when it is over.
func TestNoSeriesOfAStreamComesBackThatIsOver(t *testing.T) {
	tel, rec := newTelemetry(new(bytes.Buffer)), records(1)
	tel.Joined(*rec[0].Stream)
	tel.Written("bus", rec, time.Millisecond)
	tel.Left(*rec[0].Stream)
	tel.Written("bus", rec, time.Millisecond)
	if n := tel.metrics.sinkRecords.DeletePartialMatch(prometheus.Labels{"sink": "bus"}); n != 0 {
		t.Errorf("there are %d series", n)
	}
	tel.Joined(*rec[0].Stream)
	tel.Written("bus", rec, time.Millisecond)
	if n := tel.metrics.sinkRecords.DeletePartialMatch(prometheus.Labels{"sink": "bus"}); n != 1 {
		t.Errorf("of a stream that goes on there are %d series, want 1", n)
	}
}

// TestAStreamIsInItsSnapshotUntilAllSinksAreCompared: also where an earlier life has begun that.
func TestAStreamIsInItsSnapshotUntilAllSinksAreCompared(t *testing.T) {
	tel := newTelemetry(new(bytes.Buffer))
	tel.Joined(pods())
	tel.Watching(pods(), "100")
	views := &listener.Views{Streams: map[string][]listener.View{"pods": {{Sink: "bus", Comparing: change.Initial}, {Sink: "lake"}}}}
	tel.Follow(func() *listener.Views { return views })
	for _, want := range []string{snapshotting, watching} {
		if have := tel.Status().Streams["pods"].State; have != want {
			t.Errorf("the state is %q, want %q", have, want)
		}
		views.Streams["pods"][0].Comparing = ""
	}
}

// historyRig has one stream, that was received from so often a second for two minutes until then.
func historyRig(stream change.Stream, perSecond int, until time.Time) (*Telemetry, *bytes.Buffer) {
	log := new(bytes.Buffer)
	tel := newTelemetry(log)
	tel.Streams = nil
	tel.Left(stream)
	tel.Joined(stream)
	log.Reset()
	n := 120 * perSecond
	for i := range n {
		at := until.Add(-120 * time.Second * time.Duration(n-i) / time.Duration(n))
		tel.Received(&change.Record{Stream: &stream, Op: change.Updated, Received: at})
	}
	return tel, log
}

// waits makes the stream's oldest record that is not saved one of that age.
func waits(tel *Telemetry, stream change.Stream, since time.Time) {
	oldest := map[string]time.Time{}
	if !since.IsZero() {
		oldest[stream.String()] = since
	}
	views := standing(oldest)()
	for _, sinks := range views.Streams {
		sinks[0].Sink = tel.Sinks[0]
	}
	tel.Follow(func() *listener.Views { return views })
}

// TestI4TheEndOfHistoryIsSeenComing: for each resource that waits, by how often it changes; and no health check fails
// for it.
func TestI4TheEndOfHistoryIsSeenComing(t *testing.T) {
	events, part := pods(), pods()
	events.Resource.Name, part.Namespace = "events", "shop"
	for _, c := range []struct {
		what      string
		stream    change.Stream
		perSecond int
		age       time.Duration // 0: nothing waits
		least, to float64
	}{
		{"nothing waits, it is quiet", pods(), 0, 0, 300, 300},
		{"it is quiet", pods(), 0, 2 * time.Minute, 120, 180},
		{"for very long", pods(), 0, time.Hour, 0, 0},
		{"nothing waits, 10 a second", pods(), 10, 0, 70, 90},
		{"10 a second", pods(), 10, time.Minute, 10, 30},
		{"nothing waits, 5000 a second", pods(), 5000, 0, 20, 22},
		{"5000 a second", pods(), 5000, 30 * time.Second, 0, 0},
		{"the history of Events is etcd's", events, 5000, time.Minute, 200, 240},
		{"only a part is known", part, 0, 0, 75, 75},
		{"of which much changes", part, 5000, 0, 20, 22},
	} {
		synctest.Test(t, func(t *testing.T) {
			now := time.Now()
			tel, _ := historyRig(c.stream, c.perSecond, now.Add(-c.age))
			if c.age > 0 {
				waits(tel, c.stream, now.Add(-c.age))
			}
			status := tel.Status().Streams[c.stream.String()]
			if got := status.HistoryLeftSeconds; got < c.least || got > c.to || got > status.HistorySeconds {
				t.Errorf("%s: %v of %v s of history are left, want %v to %v", c.what, got, status.HistorySeconds, c.least, c.to)
			}
		})
	}
}

// TestI4WhoHoldsAStreamUpIsNamedAtOnce, once, and again when it does so again.
func TestI4WhoHoldsAStreamUpIsNamedAtOnce(t *testing.T) {
	now := time.Now()
	tel, log := historyRig(pods(), 10, now.Add(-time.Minute))
	held := func(since time.Time) []string {
		waits(tel, pods(), since)
		log.Reset()
		tel.CheckHistory()
		return tel.Status().Streams["pods"].HeldBy
	}
	sink := tel.Sinks[0]
	tel.Queued(sink, fifo.Levels{Records: 1, Oldest: now.Add(-10 * time.Second)})
	if got := held(now.Add(-10 * time.Second)); got != nil || log.Len() > 0 {
		t.Errorf("after 10 s it is held by %v, and the log says %s", got, log)
	}
	since := now.Add(-time.Minute)
	tel.Queued(sink, fifo.Levels{Records: 1, Oldest: since})
	for _, want := range []string{"sinks=" + sink + " streams=1 resource=pods", ""} {
		if got := held(since); !slices.Equal(got, []string{sink}) || !strings.Contains(log.String(), want) || want == "" && log.Len() > 0 {
			t.Errorf("after a minute it is held by %v, and the log says %q, want %q", got, log, want)
		}
	}
	tel.Queued(sink, fifo.Levels{})
	if got := held(time.Time{}); got != nil || log.Len() > 0 {
		t.Errorf("when it is back it is held by %v, and the log says %s", got, log)
	}
	tel.Queued(sink, fifo.Levels{Records: 1, Oldest: since})
	if held(since); log.Len() == 0 {
		t.Error("it is not told a second time")
	}
	for path, want := range map[string]string{"/metrics": `kubecdc_history_seconds{cluster="dev",resource="pods"} `, "/healthz": "ok"} {
		_, body := get(tel, path)
		if !strings.Contains(body, want) {
			t.Errorf("%s says %s, want %s in it", path, body, want)
		}
	}
}

// TestASinkThatFailsIsToldOnceToHoldStreamsUp, though the pace of a stream falls and rises meanwhile; when it has taken
// records it is told of anew.
func TestASinkThatFailsIsToldOnceToHoldStreamsUp(t *testing.T) {
	now := time.Now()
	tel, log := historyRig(pods(), 10, now.Add(-time.Minute))
	sink, since := tel.Sinks[0], now.Add(-time.Minute)
	tel.Opened(sink, 0)
	tel.Retried(sink, "unreachable", errors.New("nobody listens"))
	told := func(since time.Time) int {
		tel.Queued(sink, fifo.Levels{Records: 1, Oldest: since})
		waits(tel, pods(), since)
		log.Reset()
		tel.CheckHistory()
		return strings.Count(log.String(), "hold streams up")
	}
	for i, want := range []int{1, 0, 0} {
		if got := told([]time.Time{since, now, since}[i]); got != want {
			t.Errorf("at step %d of the outage it is told %d times, want %d", i, got, want)
		}
	}
	tel.Written(sink, records(1), time.Millisecond)
	if told(now); told(since) != 1 {
		t.Error("it is not told of the next outage")
	}
}

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
