package telemetry

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

func TestI4DeadLettersAreCountedAndTold(t *testing.T) {
	log := new(bytes.Buffer)
	tel := newTelemetry(log)
	tel.CountLetters = func(name string) (int, error) {
		if name == "lake" {
			return 0, errors.New("no directory")
		}
		return 3, nil
	}
	stream := pods()
	rec := &change.Record{
		Stream: &stream, Key: change.Key{Namespace: "n", Name: "huge"}, UID: "u", ResourceVersion: "7",
		Remarks: &change.Remarks{Trimmed: ".data"}, Replay: &change.Replay{Letter: "abc"},
	}
	for range 2 { // a full disk is tried again and again
		tel.NotKept("bus", errors.New("disk full"))
	}
	if s := tel.Status().Sinks["bus"]; s.State != failing || s.LastError != "disk full" {
		t.Errorf("sink shows %+v", s)
	}
	tel.Dropped("bus")
	tel.Dropped("bus")
	tel.Trimmed("bus", rec)
	tel.Replayed("bus", rec, nil)
	tel.Replayed("bus", rec, errors.New("superseded"))
	for _, line := range []string{
		`kubecdc_dead_letters{sink="bus"} 3`, `kubecdc_sink_trimmed_total{sink="bus"} 1`, `kubecdc_dead_letters_replayed_total{sink="bus"} 1`,
		`kubecdc_sink_retries_total{reason="dead_letter",sink="bus"} 2`, `kubecdc_dead_letters_dropped_total{sink="bus"} 2`,
	} {
		if !exposed(t, tel, line) {
			t.Errorf("/metrics lacks %s", line)
		}
	}
	const object = ` sink=bus resource=pods object=n/huge uid=u resourceVersion=7 `
	for _, line := range []string{
		`level=ERROR msg="dead letter cannot be kept; the sink waits and retries" sink=bus error="disk full"`,
		`level=ERROR msg="dead letters have reached their limit;`,
		`level=WARN msg="record trimmed to fit into the sink"` + object + `trimmed=.data`,
		`level=INFO msg="dead letter sent again"` + object + `letter=abc`,
		`level=WARN msg="dead letter not sent again"` + object + `letter=abc error=superseded`,
	} {
		if strings.Count(log.String(), line) != 1 {
			t.Errorf("the log does not have %s once:\n%s", line, log)
		}
	}
}

// TestAReplayResolvesItsGap on /statusz, where a document that was handed out stays as it was.
func TestAReplayResolvesItsGap(t *testing.T) {
	tel, stream := newTelemetry(new(bytes.Buffer)), pods()
	rejected := func(name string) *change.Record {
		return &change.Record{Stream: &stream, Key: change.Key{Namespace: "n", Name: name}, ResourceVersion: "7", Replay: &change.Replay{Letter: "abc"}}
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "huge"} {
		tel.Rejected("bus", rejected(name), "too_large", errors.New("above the limit"))
	}
	before := tel.Status()
	tel.Replayed("bus", rejected("huge"), nil)
	after := tel.Status()
	recent := after.Sinks["bus"].RecentGaps
	if len(recent) != mostGaps || recent[0].Object != "n/huge" || recent[0].Rejected != "too_large" || recent[0].Resolved.IsZero() || !recent[1].Resolved.IsZero() {
		t.Errorf("the newest of %d gaps are %+v and %+v", len(recent), recent[0], recent[1])
	}
	if after.Sinks["bus"].LastGap.Resolved.IsZero() || after.Streams["pods"].LastGap.Resolved.IsZero() || after.Sinks["bus"].Gaps != 7 {
		t.Errorf("the last gap is %+v of %d", after.Sinks["bus"].LastGap, after.Sinks["bus"].Gaps)
	}
	if !before.Sinks["bus"].RecentGaps[0].Resolved.IsZero() {
		t.Error("a document changes after it was handed out")
	}
}
