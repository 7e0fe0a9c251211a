package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/test/testcluster"
)

// TestI4AnotherClusterBehindAWildcard: every stream of the wildcard, also one that came while the exporter ran, is
// compared with the new cluster; what that does not define ends with deletes, and begins anew when it is defined.
func TestI4AnotherClusterBehindAWildcard(t *testing.T) {
	t.Parallel()
	r := newRigOfWildcard(t, served{
		cluster:    testcluster.Options{SplitProcesses: true},
		configured: "resources: [{resource: '*', exclude: [leases.coordination.k8s.io, events, events.events.k8s.io]}]\n", context: "dev",
	})
	r.starts()
	r.define("gear")
	r.define("cog")
	old := []string{r.made("gear", "a"), r.made("gear", "b"), r.made("cog", "c")}
	for _, uid := range old {
		r.arrives(uid, "added", "replaced")
	}
	r.offline(func() error { return os.RemoveAll(r.etcd()) })
	r.arrives(old[1], "deleted")
	r.define("gear")
	again := r.made("gear", "a")
	r.arrives(again, "added", "replaced")
	for _, uid := range old {
		r.arrives(uid, "deleted")
	}
	r.eventuallyPage("all streams but cogs are of the new cluster", ofNewCluster)
	r.define("cog")
	second := r.made("cog", "c")
	r.arrives(second, "added", "replaced")
	r.agrees()
	r.exporter.stop(t)
	for _, uid := range old {
		r.once(uid, "deleted")
	}
	for _, uid := range []string{again, second} {
		if told := r.toldTo(r.file, uid); told != "added" && told != "replaced" {
			t.Errorf("an object of the new cluster is told as %q, want once", told)
		}
	}
	for _, resource := range []string{"gears.gadgets.example.com", "cogs.gadgets.example.com"} {
		r.framed(resource)
	}
	j := newJudge("file", nil, true)
	for i := range r.file.events {
		j.hearForm(&r.file.events[i])
	}
	j.verdict(t)
}

// ofNewCluster says whether each stream goes on after a gap of another epoch, but for those that the new cluster does
// not define, which are over, or came later.
func ofNewCluster(p page) bool {
	if _, found := p.Streams["cogs.gadgets.example.com"]; found || len(p.Streams) < 20 {
		return false
	}
	for name, s := range p.Streams {
		if gone := name == "gears.gadgets.example.com"; s.State != "watching" || !gone && s.LastGap.Reason != "epoch" {
			return false
		}
	}
	return true
}

// agrees has the exporter compare the cluster with its file.
func (r *rig) agrees() {
	r.t.Helper()
	o := r.run("verify", "--config", r.configPath(), "--kubeconfig", r.cluster.Kubeconfig(), "--context", "dev")
	if o.Code != 0 || !strings.Contains(o.Stdout+o.Stderr, "equal") {
		r.t.Errorf("exporter verify: %+v", o)
	}
}
