package e2e

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestI4WhatIsSelectedAndWhatIsNot in one cluster: an object that leaves a selector is a delete for the consumer,
// namespaces and exclusions hold, and an Event, which two groups serve, is exported once, its counts and series as
// updates.
func TestI4WhatIsSelectedAndWhatIsNot(t *testing.T) {
	r := newWildcardRig(t, `resources:
  - {resource: "*", exclude: [leases.coordination.k8s.io, "*.rbac.authorization.k8s.io"], excludeNamespaces: [hidden]}
  - {resource: configmaps, namespaces: [chosen, other], labelSelector: "app=web"}
`, "dev")
	for _, name := range []string{"hidden", "chosen", "other"} {
		r.make(core("namespaces"), coreObject("Namespace", name, nil))
	}
	r.starts()
	r.eventuallyPage("events are watched once", func(p page) bool {
		left := p.Discovery.LeftOut
		_, twice := p.Streams["events.events.k8s.io"]
		return p.Streams["events"].State == "watching" && p.Streams["chosen/configmaps"].State == "watching" && !twice && left["events.events.k8s.io"] == "its objects are those of events" &&
			strings.Contains(left["componentstatuses"], "cannot be watched, its verbs are get, list") && left["leases.coordination.k8s.io"] == "excluded by the configuration"
	})

	web := r.object("chosen", coreObject("ConfigMap", "web", map[string]any{"app": "web"}))
	r.arrives(web.UID(), "added")
	r.relabel(web, "db")
	r.arrives(web.UID(), "deleted")
	back := r.relabel(web, "web")
	r.file.await(t, r.exporter, "the object that is selected again", func(e *event) bool { return e.UID == web.UID() && e.ResourceVersion == back && e.op() == "added" })
	unselected := []string{
		r.object("chosen", coreObject("ConfigMap", "db", map[string]any{"app": "db"})).UID(),
		r.object("hidden", coreObject("ConfigMap", "web", map[string]any{"app": "web"})).UID(),
		r.object("hidden", coreObject("ServiceAccount", "quiet", nil)).UID(),
	}

	counted := r.object("chosen", occurrence())
	r.change(counted, func(o map[string]any) { o["count"] = int64(2) })
	series := r.object("chosen", recurrence())
	r.change(series, func(o map[string]any) {
		o["series"] = map[string]any{"count": int64(2), "lastObservedTime": "2026-11-21T10:01:00.000000Z"}
	})
	for _, uid := range []string{counted.UID(), series.UID()} {
		r.arrives(uid, "updated")
	}
	r.exporter.stop(t)

	of, ops := map[string][]string{}, []string(nil)
	for _, e := range r.file.all(t) {
		if slices.Contains(unselected, e.UID) || e.kind() == "leases.coordination.k8s.io" || e.Group == "rbac.authorization.k8s.io" {
			t.Errorf("not selected, and told:\n%s", &e)
		}
		switch e.UID {
		case counted.UID(), series.UID():
			of[e.UID] = append(of[e.UID], e.kind()+" "+e.op())
		case web.UID():
			ops = append(ops, e.op())
			if e.op() == "deleted" && (e.FinalStateUnknown || !strings.Contains(string(e.Data), `"app":"web"`)) {
				t.Errorf("what left the selector is told without its last selected state:\n%s %s", &e, e.Data)
			}
		}
	}
	for uid, told := range of {
		if got := strings.Join(told, ", "); got != "events added, events updated" {
			t.Errorf("Event %s is told as %s", uid, got)
		}
	}
	if got := strings.Join(ops, ", "); got != "added, deleted, added" {
		t.Errorf("the object that leaves and enters the selector is told as %s", got)
	}
}

// made is an object of the API server.
type made struct {
	resource schema.GroupVersionResource
	*unstructured.Unstructured
}

func (m made) UID() string { return string(m.GetUID()) }

func (r *rig) object(namespace string, manifest map[string]any) made {
	r.t.Helper()
	resource := core(strings.ToLower(manifest["kind"].(string)) + "s")
	if group, version, grouped := strings.Cut(manifest["apiVersion"].(string), "/"); grouped {
		resource.Group, resource.Version = group, version
	}
	return made{resource, r.create(resource, namespace, manifest)}
}

// change changes the object and returns its new version.
func (r *rig) change(m made, change func(map[string]any)) (version string) {
	r.t.Helper()
	client := r.client.Resource(m.resource).Namespace(m.GetNamespace())
	object, err := client.Get(r.t.Context(), m.GetName(), metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	change(object.Object)
	if object, err = client.Update(r.t.Context(), object, metav1.UpdateOptions{}); err != nil {
		r.t.Fatal(err)
	}
	return object.GetResourceVersion()
}

func (r *rig) relabel(m made, app string) (version string) {
	r.t.Helper()
	return r.change(m, func(o map[string]any) { o["metadata"].(map[string]any)["labels"] = map[string]any{"app": app} })
}

// occurrence is an Event as clients of the core group write it: it is counted.
func occurrence() map[string]any {
	const now = "2026-11-21T10:00:00Z"
	return map[string]any{
		"apiVersion": "v1", "kind": "Event", "metadata": map[string]any{"name": "counted"}, "type": "Normal", "reason": "Happened", "message": "it happened",
		"involvedObject": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "chosen", "name": "web"},
		"firstTimestamp": now, "lastTimestamp": now, "count": int64(1),
	}
}

// recurrence is an Event as clients of the new group write it: it becomes a series.
func recurrence() map[string]any {
	return map[string]any{
		"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": map[string]any{"name": "series"}, "type": "Normal", "reason": "Happened", "note": "it happened",
		"action": "Happening", "reportingController": "example.com/e2e", "reportingInstance": "e2e", "eventTime": "2026-11-21T10:00:00.000000Z",
		"regarding": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "chosen", "name": "web"},
	}
}
