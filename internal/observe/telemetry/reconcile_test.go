package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

func pods() change.Stream {
	return change.Stream{Resource: change.Resource{Version: "v1", Name: "pods"}}
}

func newTelemetry(log *bytes.Buffer) *Telemetry {
	return New(Options{
		ClusterUID: "epoch-1", Streams: []change.Stream{pods()}, Sinks: []string{"lake", "bus"},
		Logger:       slog.New(slog.NewTextHandler(log, nil)),
		CountObjects: func(string, change.Stream) (int, error) { return 0, nil },
	})
}

// exposed says whether /metrics has the line.
func exposed(t *testing.T, tel *Telemetry, line string) bool {
	t.Helper()
	_, body := get(tel, "/metrics")
	return strings.Contains(body, "\n"+line+"\n")
}

func snapshot(reason change.Reason, sinks ...string) *change.Snapshot {
	return &change.Snapshot{Reason: reason, Sinks: sinks, From: "100", ResourceVersion: "300", Since: time.Unix(1000, 0), Epoch: "epoch-2"}
}

// A gap is in the metrics, in the log and on /statusz, with what was delivered, what is proven, why and since when.
// There is none in a comparison for another reason.
func TestI4GapIsTold(t *testing.T) {
	for _, reason := range []change.Reason{change.Gone, change.Stale, change.Epoch} {
		log := new(bytes.Buffer)
		tel := newTelemetry(log)
		tel.Comparing(pods(), snapshot(reason))
		tel.TellAll()
		if !exposed(t, tel, fmt.Sprintf(`kubecdc_source_gaps_total{reason="%s",resource="pods"} 1`, reason)) {
			t.Errorf("%s is not counted once", reason)
		}
		if text := log.String(); strings.Count(text, "gap:") != 1 || !strings.Contains(text, `level=WARN msg="gap: intermediate changes may be missing" resource=pods reason=`+string(reason)+` lastDelivered=100 resourceVersion=300 since=`) {
			t.Errorf("%s: log is %s", reason, text)
		}
		status := tel.Status()
		shown, err := json.Marshal(status.Streams["pods"].LastGap)
		if err != nil || !strings.Contains(string(shown), `"reason":"`+string(reason)+`","stream":"pods","lastDelivered":"100","resourceVersion":"300","since":"19`) {
			t.Errorf("%s: status shows %s, %v", reason, shown, err)
		}
		if status.Sinks["lake"].Gaps != 0 || status.Streams["pods"].Gaps != 1 {
			t.Errorf("%s: the gap of all is shown as a sink's, or not at all", reason)
		}
		if uid := status.ClusterUID; (uid == "epoch-2") != (reason == change.Epoch) {
			t.Errorf("%s: status is of cluster %s", reason, uid)
		}
	}
	log := new(bytes.Buffer)
	tel := newTelemetry(log)
	for _, reason := range []change.Reason{change.Initial, change.Resync, change.Requested} {
		tel.Comparing(pods(), snapshot(reason))
	}
	if status := tel.Status(); status.Streams["pods"].LastGap != nil || strings.Contains(log.String(), "WARN") {
		t.Errorf("without a gap, status shows %+v, log is %s", status.Streams["pods"], log)
	}
}

func TestI4GapOfOneSinkIsShownWithIt(t *testing.T) {
	log := new(bytes.Buffer)
	tel := newTelemetry(log)
	tel.Comparing(pods(), snapshot(change.Lost, "lake"))
	stream := pods()
	tel.Rejected("bus", &change.Record{Stream: &stream, Key: change.Key{Namespace: "n", Name: "huge"}, ResourceVersion: "7"}, "too_large", errors.New("above the limit"))
	tel.TellAll()
	status := tel.Status()
	lake, bus := status.Sinks["lake"], status.Sinks["bus"]
	if lake.Gaps != 1 || lake.LastGap.Reason != change.Lost || lake.LastGap.Stream != "pods" {
		t.Errorf("sink lake shows %+v", lake)
	}
	if bus.Gaps != 1 || bus.LastGap.Reason != change.Policy || bus.LastGap.Object != "n/huge" {
		t.Errorf("sink bus shows %+v", bus)
	}
	if !exposed(t, tel, `kubecdc_source_gaps_total{reason="policy",resource="pods"} 1`) {
		t.Error("the rejected record is not counted once")
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 || strings.Count(log.String(), "level=WARN") != 1 {
		t.Errorf("log is %s, want one line for each", log)
	}
}

// TestI4WhatCannotBeReadIsAGapOfItsStream where it is nobody's. That of an object is its sinks' gap.
func TestI4WhatCannotBeReadIsAGapOfItsStream(t *testing.T) {
	log := new(bytes.Buffer)
	tel := newTelemetry(log)
	stream, why := pods(), errors.New("no object")
	tel.Unreadable(&change.Record{Stream: &stream, Op: change.Updated, Key: change.Key{Namespace: "n", Name: "odd"}, Withheld: change.Unreadable}, why)
	if got := tel.Status().Streams["pods"]; got.Gaps != 0 || !strings.Contains(log.String(), "object=n/odd") {
		t.Errorf("the stream shows %+v; log is %s", got, log)
	}
	tel.Unreadable(&change.Record{Stream: &stream, Op: change.Gap, ResourceVersion: "9", Snapshot: &change.Snapshot{Reason: change.Policy, From: "7"}}, why)
	if got := tel.Status().Streams["pods"]; got.Gaps != 1 || got.LastGap.Reason != change.Policy || got.LastGap.From != "7" || got.LastGap.To != "9" {
		t.Errorf("the stream shows %+v", got)
	}
	if !exposed(t, tel, `kubecdc_source_gaps_total{reason="policy",resource="pods"} 1`) {
		t.Error("the gap is not counted once")
	}
}

func TestI4DriftIsLoggedWithItsObjectsAndCounted(t *testing.T) {
	log := new(bytes.Buffer)
	tel := newTelemetry(log)
	tel.Comparing(pods(), snapshot(change.Resync, "lake"))
	tel.Corrected(pods(), change.Correction{
		Op: change.Replaced, Key: change.Key{Namespace: "n", Name: "a"}, UID: "u", Version: "9", Had: "u", HadVersion: "7", Reason: change.Resync,
	})
	const want = `level=WARN msg="drift: the server has a change that no watch reported; it is corrected" resource=pods reason=resync op=replaced object=n/a uid=u resourceVersion=9 deliveredUid=u deliveredResourceVersion=7`
	if !strings.Contains(log.String(), want) {
		t.Errorf("log is %s, want %s", log, want)
	}
	for i := range 99 {
		tel.Corrected(pods(), change.Correction{Op: change.Deleted, Key: change.Key{Name: fmt.Sprint(i)}})
	}
	tel.Compared(pods(), snapshot(change.Resync, "lake"))
	if n := strings.Count(log.String(), "drift: "); n != maxCorrections {
		t.Errorf("%d objects are logged, want %d", n, maxCorrections)
	}
	if !strings.Contains(log.String(), "corrections=100") {
		t.Errorf("log is %s, want the count at the end", log)
	}
	for _, line := range []string{`{op="replaced",resource="pods"} 1`, `{op="deleted",resource="pods"} 99`} {
		if !exposed(t, tel, "kubecdc_corrections_total"+line) {
			t.Errorf("corrections%s is not exposed", line)
		}
	}
	log.Reset()
	tel.Comparing(pods(), snapshot(change.Resync, "lake"))
	tel.Compared(pods(), snapshot(change.Resync, "lake"))
	if strings.Contains(log.String(), "drift") {
		t.Errorf("a resync without drift logs %s", log)
	}
}
