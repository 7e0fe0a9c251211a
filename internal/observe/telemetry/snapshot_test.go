package telemetry

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// percentOf is what is shown of a stream's snapshot; -1 is no percentage, -2 no snapshot.
func percentOf(t *Telemetry, stream change.Stream) int {
	switch s := t.Status().Streams[stream.String()].Snapshot; {
	case s == nil:
		return -2
	case s.Percent == nil:
		return -1
	default:
		return *s.Percent
	}
}

func TestASnapshotIsShownInPercentUntilItIsRead(t *testing.T) {
	tel := newTelemetry(new(bytes.Buffer))
	tel.Listed(pods(), 1, 1) // of none
	if got := percentOf(tel, pods()); got != -2 {
		t.Errorf("a stream without a snapshot shows %d%%", got)
	}
	tel.Reconciling(pods(), snapshot(change.Requested, "lake"))
	for _, page := range []struct {
		n         int
		remaining int64
		want      int
	}{{0, -1, -1}, {500, 999, 33}, {998, 1, 99}, {1, 0, 100}} {
		tel.Listed(pods(), page.n, page.remaining)
		if got := percentOf(tel, pods()); got != page.want {
			t.Errorf("behind %+v it shows %d%%", page, got)
		}
	}
	tel.Reconciled(pods(), snapshot(change.Requested, "lake"))
	if got := percentOf(tel, pods()); got != -2 {
		t.Errorf("behind its end it shows %d%%", got)
	}
}

// TestALongSnapshotIsALineNowAndThen: with what remains where that is known.
func TestALongSnapshotIsALineNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		tel := newTelemetry(&log)
		tel.Reconciling(pods(), snapshot(change.Initial))
		log.Reset()
		for range 25 {
			time.Sleep(time.Second)
			tel.Listed(pods(), 500, 100)
		}
		tel.Reconciling(pods(), snapshot(change.Initial))
		time.Sleep(9 * time.Second)
		tel.Listed(pods(), 1, 1)
		time.Sleep(time.Second)
		tel.Listed(pods(), 6, -1)
		var lines []string
		for line := range strings.Lines(log.String()) {
			if _, said, is := strings.Cut(line, `msg="snapshot goes on" `); is {
				lines = append(lines, strings.TrimSpace(said))
			}
		}
		want := []string{
			"resource=pods reason=initial objects=5000 remaining=100 perSecond=500",
			"resource=pods reason=initial objects=10000 remaining=100 perSecond=500",
			"resource=pods reason=initial objects=7 perSecond=0",
		}
		if !slices.Equal(lines, want) {
			t.Errorf("the log has\n%q\nwant\n%q", lines, want)
		}
	})
}

// TestAStreamIsWatchedBehindTheSnapshotForAllSinks: a watch is open beside it, and what failed recovers.
func TestAStreamIsWatchedBehindTheSnapshotForAllSinks(t *testing.T) {
	var log bytes.Buffer
	tel := newTelemetry(&log)
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() { tel.Reconciling(pods(), snapshot(change.Initial)) }, snapshotting},
		{func() { tel.Watching(pods(), "7") }, snapshotting},
		{func() { tel.StreamFailed(pods(), errors.New("boom")) }, failing},
		{func() { tel.Watching(pods(), "8") }, snapshotting},
		{func() { tel.Reconciled(pods(), snapshot(change.Initial)) }, watching},
		{func() { tel.Reconciling(pods(), snapshot(change.Requested, "lake")) }, watching},
		{func() { tel.Reconciling(pods(), snapshot(change.Epoch)) }, snapshotting},
		{func() { tel.Reconciled(pods(), snapshot(change.Epoch)) }, snapshotting},
		{func() { tel.Watching(pods(), "9") }, watching},
	} {
		step.do()
		if got := tel.Status().Streams[pods().String()].State; got != step.want {
			t.Errorf("the stream is %s, want %s, behind\n%s", got, step.want, &log)
		}
	}
	if got := log.String(); strings.Count(got, "stream recovered") != 1 || strings.Count(got, "msg=watching") != 1 {
		t.Errorf("logged is\n%s", got)
	}
}

// TestASnapshotOfUnknownLengthIsMeasuredByTheInventory, where somebody has counted that, and is never complete before
// its end.
func TestASnapshotOfUnknownLengthIsMeasuredByTheInventory(t *testing.T) {
	tel := newTelemetry(new(bytes.Buffer))
	tel.states.streams["pods"].counts["bus"] = &objectCount{n: 10, counted: time.Now()}
	tel.Reconciling(pods(), snapshot(change.Resync, "bus"))
	for _, want := range []int{45, 90, 90} {
		if tel.Listed(pods(), 5, -1); percentOf(tel, pods()) != want {
			t.Errorf("it shows %d%%, want %d%%", percentOf(tel, pods()), want)
		}
	}
}

// TestTheInventoryDoesNotMeasureASnapshotOfAPart.
func TestTheInventoryDoesNotMeasureASnapshotOfAPart(t *testing.T) {
	tel := newTelemetry(new(bytes.Buffer))
	tel.states.streams["pods"].counts["bus"] = &objectCount{n: 10, counted: time.Now()}
	limited := snapshot(change.Requested, "bus")
	limited.Limits.Selector = "app=web"
	tel.Reconciling(pods(), limited)
	if tel.Listed(pods(), 5, -1); percentOf(tel, pods()) != -1 {
		t.Errorf("it shows %d%%", percentOf(tel, pods()))
	}
	tel.Reconciled(pods(), limited)
	if got := tel.Status().Streams["pods"].LastReconcile.Limits; got != limited.Limits {
		t.Errorf("the last reconcile is shown as of %s", got)
	}
}

func TestProgressIsOfTheSnapshotOfTheSinkAndTheReason(t *testing.T) {
	tel := newTelemetry(new(bytes.Buffer))
	tel.Reconciling(pods(), snapshot(change.Requested, "lake"))
	tel.Listed(pods(), 1, 3)
	p, found := tel.Progress("pods", change.Owed{Sink: "lake", Reason: change.Requested})
	if !found || p.Read || p.Objects != 1 || *p.Percent != 25 {
		t.Errorf("the progress is %+v, %t", p, found)
	}
	for _, other := range []struct {
		stream string
		owed   change.Owed
	}{
		{"pods", change.Owed{Sink: "bus", Reason: change.Requested}}, {"pods", change.Owed{Sink: "lake", Reason: change.Resync}},
		{"nodes", change.Owed{Sink: "lake", Reason: change.Requested}},
		{"pods", change.Owed{Sink: "lake", Reason: change.Requested, Limits: change.Limits{Namespace: "shop"}}},
	} {
		if p, found := tel.Progress(other.stream, other.owed); found {
			t.Errorf("%+v has the progress %+v", other, p)
		}
	}
	tel.Reconciled(pods(), snapshot(change.Requested, "lake"))
	if p, found := tel.Progress("pods", change.Owed{Sink: "lake", Reason: change.Requested}); !found || !p.Read {
		t.Errorf("behind the end the progress is %+v, %t", p, found)
	}
	tel.Reconciling(pods(), snapshot(change.Gone))
	if p, found := tel.Progress("pods", change.Owed{Sink: "lake", Reason: change.Requested}); found {
		t.Errorf("behind the next begin the progress is %+v", p)
	}
}

// TestTheProgressOfSnapshotsThatOneListServesIsOfEachOfTheirSinks, until that one's is complete or given up.
func TestTheProgressOfSnapshotsThatOneListServesIsOfEachOfTheirSinks(t *testing.T) {
	tel := newTelemetry(new(bytes.Buffer))
	for _, sink := range []string{"bus", "lake", "dump"} {
		tel.Reconciling(pods(), snapshot(change.Requested, sink))
	}
	expect := func(want string) {
		t.Helper()
		got := ""
		for _, sink := range []string{"bus", "lake", "dump"} {
			switch p, found := tel.Progress("pods", change.Owed{Sink: sink, Reason: change.Requested}); {
			case !found:
				got += " -"
			case p.Read:
				got += fmt.Sprint(" read ", p.Objects)
			default:
				got += fmt.Sprint(" ", p.Objects)
			}
		}
		if got != want {
			t.Errorf("the progress is%s, want%s", got, want)
		}
	}
	tel.Listed(pods(), 1, 3)
	expect(" 1 1 1")
	tel.Abandoned(pods(), snapshot(change.Requested, "lake"))
	expect(" 1 - 1")
	tel.Listed(pods(), 3, 0)
	tel.Reconciled(pods(), snapshot(change.Requested, "bus"))
	expect(" read 4 - 4")
	tel.Reconciled(pods(), snapshot(change.Requested, "dump"))
	expect(" read 4 - read 4")
}

// TestObjectsAreCountedAgainWhereTheirSaveWasUnderWay: what was written when they were counted may not have been saved.
func TestObjectsAreCountedAgainWhereTheirSaveWasUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inStore := 0
		tel := New(Options{
			Streams: []change.Stream{pods()}, Sinks: []string{"bus"}, Logger: slog.New(slog.DiscardHandler),
			CountObjects: func(string, change.Stream) (int, error) { return inStore, nil },
		})
		stream := pods()
		count := func() int {
			n, err := tel.countObjects(tel.states.streams["pods"], "bus")
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		tel.Written("bus", []*change.Record{{Stream: &stream, Op: change.Added, Received: time.Now()}}, time.Millisecond)
		if n := count(); n != 0 {
			t.Errorf("before the save %d objects are counted", n)
		}
		inStore = 1
		time.Sleep(recount)
		if n := count(); n != 1 {
			t.Errorf("behind the save %d objects are counted", n)
		}
		inStore = 7 // nobody has written: it is not read again
		time.Sleep(recount)
		if n := count(); n != 1 {
			t.Errorf("of what nobody has written since, %d objects are counted", n)
		}
	})
}
