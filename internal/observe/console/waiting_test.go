package console

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/control"
)

func percent(n int) *int { return &n }

// waited are three snapshots, of which one is read.
func waited(done int) []control.Owed {
	return []control.Owed{
		{ID: "1", Sink: "bus", Stream: "nodes", Reason: "requested", State: control.Waits},
		{ID: "2", Sink: "bus", Stream: "pods", Reason: "requested", State: control.Reads, Objects: 10 * done, Percent: percent(done)},
		{ID: "3", Sink: "lake", Stream: "nodes", Reason: "requested", State: control.Waits},
	}
}

// TestASnapshotThatIsWaitedForIsALineNowAndThen, and none that says the same again.
func TestASnapshotThatIsWaitedForIsALineNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := new(bytes.Buffer)
		w := Waiting{Out: out}
		for second := range 21 {
			w.Show(waited(min(second, 11)))
			time.Sleep(time.Second)
		}
		w.Show(nil)
		if want := "pods for bus: reads, 5% (+2)\npods for bus: reads, 10% (+2)\npods for bus: reads, 11% (+2)\n"; out.String() != want {
			t.Errorf("told\n%s\nwant\n%s", out, want)
		}
	})
	out := new(bytes.Buffer)
	w := Waiting{Out: out, told: time.Now().Add(-time.Minute)}
	if w.Show([]control.Owed{{Sink: "bus", Stream: "\x1b[2Jpods", State: control.Waits}}); out.String() != `\u001b[2Jpods for bus: waits`+"\n" {
		t.Errorf("told %q", out)
	}
}

func TestTheStateSaysOfWhatASnapshotIsOwed(t *testing.T) {
	out := new(bytes.Buffer)
	state := &control.State{Cluster: "dev", Owed: []control.Owed{
		{Sink: "bus", Stream: "pods", Reason: "resync"},
		{Sink: "bus", Stream: "pods", Reason: "requested", Limits: change.Limits{Namespace: "shop", Selector: "app=web"}, State: control.Paused},
	}}
	must(t, PrintState(state, out))
	const want = "bus   pods                                  resync\nbus   pods, namespace shop, labels app=web  requested, paused\n"
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("printed\n%s\nwant at the end\n%s", out, want)
	}
}

func TestWhatIsOwedIsATable(t *testing.T) {
	out := new(bytes.Buffer)
	owed := append(waited(7), control.Owed{ID: "4", Sink: "lake", Stream: "pods", Reason: "resync", State: control.Delivers, Objects: 12})
	must(t, PrintOwed(owed, false, out))
	const want = `ID  RESOURCE  SINK  REASON     STATE     PROGRESS
1   nodes     bus   requested  waits     -
2   pods      bus   requested  reads     7%
3   nodes     lake  requested  waits     -
4   pods      lake  resync     delivers  12 objects
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out, want)
	}
	out.Reset()
	if err := PrintOwed(owed[1:2], true, out); err != nil || out.String() != `{"id":"2","sink":"bus","stream":"pods","reason":"requested","state":"reads","objects":70,"percent":7}`+"\n" {
		t.Errorf("%v: printed %s", err, out)
	}
}
