package telemetry

import (
	"bytes"
	"fmt"
	"log/slog"
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

// TestASnapshotIsShownInPercentUntilItIsRead: by what remains, where the server says so, else by the inventory of the
// sink, which says nothing of a part, and is never complete before its end.
func TestASnapshotIsShownInPercentUntilItIsRead(t *testing.T) {
	type page struct {
		n         int
		remaining int64
		want      int
	}
	part := snapshot(change.Requested, "bus")
	part.Limits.Selector = "app=web"
	for _, c := range []struct {
		of      *change.Snapshot
		counted int // objects, in the inventory
		pages   []page
	}{
		{snapshot(change.Requested, "lake"), 0, []page{{0, -1, -1}, {500, 999, 33}, {998, 1, 99}, {1, 0, 100}}},
		{snapshot(change.Resync, "bus"), 10, []page{{5, -1, 45}, {5, -1, 90}, {5, -1, 90}}},
		{part, 10, []page{{5, -1, -1}}},
	} {
		tel := newTelemetry(new(bytes.Buffer))
		if c.counted > 0 {
			tel.states.streams["pods"].counts["bus"] = objectCount{n: c.counted, counted: time.Now()}
		}
		tel.Listed(pods(), 1, 1) // of none
		before := percentOf(tel, pods())
		tel.Comparing(pods(), c.of)
		for _, page := range c.pages {
			tel.Listed(pods(), page.n, page.remaining)
			if got := percentOf(tel, pods()); got != page.want {
				t.Errorf("%v: behind %+v it shows %d%%", c.of, page, got)
			}
		}
		tel.Compared(pods(), c.of)
		if after := percentOf(tel, pods()); before != -2 || after != -2 {
			t.Errorf("%v: it shows %d%% before its begin, and %d%% behind its end", c.of, before, after)
		}
		if got := tel.Status().Streams["pods"].LastSnapshot.Limits; got != c.of.Limits {
			t.Errorf("the last comparison is shown as of %s", got)
		}
	}
}

// TestProgressIsOfTheSnapshotOfTheSinkAndTheReason, until that one's is complete or given up, also where one list
// serves several sinks.
func TestProgressIsOfTheSnapshotOfTheSinkAndTheReason(t *testing.T) {
	tel := newTelemetry(new(bytes.Buffer))
	sinks := []string{"bus", "lake", "dump"}
	for _, sink := range sinks {
		tel.Comparing(pods(), snapshot(change.Requested, sink))
	}
	expect := func(want string) {
		t.Helper()
		got := ""
		for _, sink := range sinks {
			switch p, found := tel.Progress("pods", change.Owed{Sink: sink, Reason: change.Requested}); {
			case !found:
				got += " -"
			case p.Read:
				got += fmt.Sprint(" read ", p.Objects)
			default:
				got += fmt.Sprintf(" %d(%d%%)", p.Objects, *p.Percent)
			}
		}
		if got != want {
			t.Errorf("the progress is%s, want%s", got, want)
		}
	}
	tel.Listed(pods(), 1, 3)
	expect(" 1(25%) 1(25%) 1(25%)")
	for stream, other := range map[string]change.Owed{
		"pods":  {Sink: "lake", Reason: change.Resync},
		"nodes": {Sink: "lake", Reason: change.Requested},
		"pods ": {Sink: "lake", Reason: change.Requested, Limits: change.Limits{Namespace: "shop"}},
	} {
		if p, found := tel.Progress(strings.TrimSpace(stream), other); found {
			t.Errorf("%+v has the progress %+v", other, p)
		}
	}
	tel.Abandoned(pods(), snapshot(change.Requested, "lake"))
	expect(" 1(25%) - 1(25%)")
	tel.Listed(pods(), 3, 0)
	tel.Compared(pods(), snapshot(change.Requested, "bus"))
	expect(" read 4 - 4(100%)")
	tel.Compared(pods(), snapshot(change.Requested, "dump"))
	expect(" read 4 - read 4")
	tel.Comparing(pods(), snapshot(change.Gone))
	expect(" - - -")
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
			must(t, err)
			return n
		}
		tel.Written("bus", []*change.Record{{Stream: &stream, Op: change.Added, Received: time.Now()}}, time.Millisecond)
		if n := count(); n != 0 {
			t.Errorf("before the save %d objects are counted", n)
		}
		inStore = 1
		time.Sleep(saved)
		if n := count(); n != 1 {
			t.Errorf("behind the save %d objects are counted", n)
		}
		inStore = 7 // nobody has written: it is not read again
		time.Sleep(saved)
		if n := count(); n != 1 {
			t.Errorf("of what nobody has written since, %d objects are counted", n)
		}
	})
}
