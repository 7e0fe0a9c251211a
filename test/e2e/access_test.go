package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubecdc/kubecdc/test/testcluster"
)

// TestI4AForbiddenResourceWaitsWhileOthersGoOn, and goes on where it was when it is allowed again.
func TestI4AForbiddenResourceWaitsWhileOthersGoOn(t *testing.T) {
	r := newRigOf(t, world{gateway: true, context: testcluster.Limited})
	r.summon()
	r.writer.populate(t)
	r.exporter.start(t)
	r.streaming()

	r.forbid(core("configmaps"))
	r.gateway.cut() // an open watch is not asked for its rights
	eventually(t, deliveryLimit, "/statusz says that configmaps are forbidden", func() bool {
		return strings.Contains(r.exporter.status(t, "configmaps").LastError, "forbidden")
	})
	r.writer.disturb(t)
	last := r.writer.finish(t)
	hidden := ""
	for _, uid := range last {
		if r.ledger.histories[uid].resource == "configmaps" {
			hidden = uid
			continue
		}
		r.await(uid)
	}
	for _, sink := range r.sinks() {
		for i := range sink.events {
			if sink.events[i].UID == hidden {
				t.Errorf("an object that the exporter may not see is in a sink:\n%s", &sink.events[i])
			}
		}
	}

	r.allow(core("configmaps"))
	r.await(hidden)
	if state := r.exporter.status(t, "configmaps").State; state != "watching" {
		t.Errorf("/statusz says that the state of configmaps is %q, want watching", state)
	}
	r.exporter.stop(t)
	r.judge(false)
}

// allowAll lets the limited user do what an exporter must.
func (r *rig) allowAll() {
	r.t.Helper()
	for _, resource := range append(r.resources(), core("namespaces")) {
		r.make(rbac("clusterroles"), map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": grant(resource)},
			"rules": []any{map[string]any{
				"apiGroups": []any{resource.Group}, "resources": []any{resource.Resource}, "verbs": []any{"get", "list", "watch"},
			}},
		})
		r.allow(resource)
	}
}

// grant is the name of the role and of the binding that allow the resource.
func grant(resource schema.GroupVersionResource) string { return "e2e-read-" + kubectlName(resource) }

// allow returns when the limited user may read the resource.
func (r *rig) allow(resource schema.GroupVersionResource) {
	r.t.Helper()
	r.make(rbac("clusterrolebindings"), map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": grant(resource)},
		"subjects": []any{map[string]any{"kind": "User", "name": testcluster.Limited, "apiGroup": "rbac.authorization.k8s.io"}},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": grant(resource)},
	})
	r.awaitAccess(resource, true)
}

// forbid returns when the limited user may no longer read the resource.
func (r *rig) forbid(resource schema.GroupVersionResource) {
	r.t.Helper()
	if err := r.client.Resource(rbac("clusterrolebindings")).Delete(r.t.Context(), grant(resource), metav1.DeleteOptions{}); err != nil {
		r.t.Fatal(err)
	}
	r.awaitAccess(resource, false)
}

func (r *rig) awaitAccess(resource schema.GroupVersionResource, allowed bool) {
	r.t.Helper()
	limited := connect(r.t, r.cluster.LimitedRESTConfig()).Resource(resource)
	eventually(r.t, deliveryLimit, "the API server knows the rights", func() bool {
		_, err := limited.List(r.t.Context(), metav1.ListOptions{Limit: 1})
		return (err == nil) == allowed
	})
}
