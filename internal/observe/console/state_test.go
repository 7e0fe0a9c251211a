package console

import (
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/control"
)

// TestEachSinkHasItsOwnPosition on a line of its own, and the comparison that is under way.
func TestEachSinkHasItsOwnPosition(t *testing.T) {
	var b strings.Builder
	state := &control.State{Streams: map[string]control.StreamState{"pods": {Sinks: map[string]control.SinkState{
		"bus": {ResourceVersion: "7", Objects: 1}, "lake": {ResourceVersion: "5", Objects: 2, Comparing: "gone"},
	}}}}
	must(t, PrintState(state, &b))
	lines := strings.Split(b.String(), "\n")
	for i, want := range []string{"STREAM SINK RESOURCEVERSION OBJECTS SNAPSHOT SELECTOR", "pods bus 7 1", "pods lake 5 2 gone"} {
		if got := strings.Join(strings.Fields(lines[i+2]), " "); got != want {
			t.Errorf("line %d is %q, want %q", i, got, want)
		}
	}
}
