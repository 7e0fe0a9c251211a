package telemetry

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// TestI6NoNameMakesALongStatus: names of some kinds are bounded by etcd alone, and errors name objects. Those that
// differ in the middle only are still told apart.
func TestI6NoNameMakesALongStatus(t *testing.T) {
	tel, stream := newTelemetry(new(bytes.Buffer)), pods()
	named := func(middle string) *change.Record {
		half := strings.Repeat("n", 150_000)
		return &change.Record{
			Stream: &stream, Key: change.Key{Namespace: "n", Name: half + middle + half}, ResourceVersion: "7",
			Replay: &change.Replay{Letter: "abc"},
		}
	}
	failed := errors.New("write " + named("x").Key.String())
	for _, middle := range []string{"a", "b", "c", "d", "e"} {
		tel.Rejected("bus", named(middle), "too_large", failed)
	}
	tel.Replayed("bus", named("d"), nil)
	resolved := 0
	for _, gap := range tel.Status().Sinks["bus"].RecentGaps {
		if !gap.Resolved.IsZero() {
			resolved++
		}
	}
	if resolved != 1 {
		t.Errorf("%d gaps are resolved by one replay", resolved)
	}
	tel.StreamFailed(stream, Failed, failed)
	tel.SinkFailed("bus", failed)
	tel.Stopped("lake", failed)
	tel.Hears("bus", failed)
	tel.SchemaWaits("bus", "pods", failed, true)
	tel.SchemaKnown("bus", "nodes", sink.Schema{}, failed)
	tel.Discovered(nil, failed)
	tel.CommitFailed(failed)
	for _, path := range []string{"/statusz", "/readyz?verbose", "/healthz"} {
		_, body := get(tel, path)
		if len(body) > 100_000 {
			t.Errorf("%s has %d bytes", path, len(body))
		}
	}
	for _, tell := range []func(){
		func() { tel.NotKept("lake", failed) }, func() { tel.Retried("lake", "timeout", failed) },
	} {
		tell()
		if n := len(tel.Status().Sinks["lake"].LastError); n > 10_000 {
			t.Errorf("the last error has %d bytes", n)
		}
	}
}
