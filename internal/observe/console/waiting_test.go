package console

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

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
