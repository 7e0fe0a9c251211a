package telemetry

import (
	"bytes"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
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

// historyRig has one stream, that was received from so often a second for two minutes until then.
func historyRig(stream change.Stream, perSecond int, until time.Time) (*Telemetry, *bytes.Buffer) {
	log := new(bytes.Buffer)
	tel := newTelemetry(log)
	tel.Streams = nil
	tel.StreamOver(stream)
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
		sinks[0].Sink = "lake"
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
