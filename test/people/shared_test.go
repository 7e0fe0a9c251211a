package people

import (
	"fmt"
	"strings"
	"testing"
)

// TestI1ASelectorThatIsChangedAndChangedBackOnASharedStream: within the window in which JetStream knows ids, an object
// that is left out, selected again and left out again is told by the ids of before. Each is stored, and the stream has
// what the cluster has after each start.
func TestI1ASelectorThatIsChangedAndChangedBackOnASharedStream(t *testing.T) {
	r := newRig(t, "selected")
	r.startNATS()
	for i := range 5 {
		r.label(fmt.Sprint("map-", i), "web")
	}
	r.label("other", "db")
	configure := func(more string) {
		r.configure("config.yaml", r.resource("configmaps", more), fmt.Sprintf("  - {name: bus, nats: {url: %q, stream: BUS, shared: true}}", r.nats))
	}
	var want []string
	for _, phase := range []struct{ more, ops string }{
		{"", "replaced"}, {", labelSelector: team=db", "deleted"}, {"", "replaced"}, {", labelSelector: 'team in (db)'", "deleted"}, {"", "replaced"},
	} {
		configure(phase.more)
		r.start()
		r.equal("verify", "-f", r.path("config.yaml"), "--timeout", "1m")
		r.stop()
		want = append(want, phase.ops)
		told := map[string][]string{}
		for _, m := range messagesOf(t, r.nats, "BUS") {
			part := strings.Split(m.Headers().Get("kubecdc-id"), "/")
			told[part[3]] = append(told[part[3]], part[6])
		}
		for i := range 5 {
			if name := fmt.Sprint("map-", i); strings.Join(told[name], " ") != strings.Join(want, " ") {
				t.Errorf("with %q, %s is told %q, want %q", phase.more, name, told[name], want)
			}
		}
		if len(told["other"]) != 1 {
			t.Errorf("with %q, what is always selected is told %q", phase.more, told["other"])
		}
	}
}
