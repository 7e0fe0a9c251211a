package task

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/telemetry"
)

// Elsewhere says where to ask what only a leader knows.
func (m *Member) Elsewhere() string { return elsewhere(m.Status(), m.task.lease.Namespace) }

// elsewhere names the leader, and a command to copy where its name can be a pod's: whoever may write the Lease chooses
// the name, and a shell would follow what else it says.
func elsewhere(status telemetry.Leadership, namespace string) string {
	leader := "no exporter leads now: ask again"
	if status.Leader != "" {
		leader = fmt.Sprintf("%q leads since %s: run the command there", status.Leader, status.Since.UTC().Format(time.RFC3339))
	}
	if isPodName(status.Leader) {
		leader = fmt.Sprintf("%s leads since %s: run the command there (in a cluster, kubectl exec -n %s %s -- exporter ...)",
			status.Leader, status.Since.UTC().Format(time.RFC3339), namespace, status.Leader)
	}
	return fmt.Sprintf("this exporter stands by, and %s (exporter checkpoint show --log shows the state from anywhere)", leader)
}

// isPodName says whether a pod may have the name, as RFC 1123 has those of hosts.
func isPodName(name string) bool {
	const most, ends = 253, "abcdefghijklmnopqrstuvwxyz0123456789"
	if name == "" || len(name) > most || !strings.ContainsRune(ends, rune(name[0])) {
		return false
	}
	return strings.Trim(name, ends+"-.") == ""
}
