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
			Streams: []change.Stream{pods()}, Sinks: map[string]Place{"bus": {}}, Logger: slog.New(slog.DiscardHandler),
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
