package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// about is a world in which Events tell of ConfigMaps and Nodes.
type about struct {
	*rig
	told int // Events so far
}

func newAbout(t *testing.T) *about {
	t.Helper()
	a := &about{rig: newRig(t)}
	a.file = nil
	a.configured(fmt.Sprintf("resources:\n- {resource: configmaps, before: true, drop: [.metadata.labels.hidden]}\n- {resource: nodes, before: true}\n- secrets\n"+
		"- {resource: events, involved: [labels, ownerReferences]}\nsinks:\n- {nats: {url: %q, stream: %s}}\n", "nats://"+a.broker.address(), streamName))
	return a
}

// make creates an object with labels, and waits until it is told.
func (a *about) make(resource, kind, namespace, name string, labels map[string]any) *unstructured.Unstructured {
	a.t.Helper()
	made := a.create(core(resource), namespace, coreObject(kind, name, labels))
	a.stream.awaitObjects(a.t, a.exporter, string(made.GetUID()))
	return made
}

// report creates an Event in the namespace about an object, as a client of the API server does.
func (a *about) report(namespace, kind, of, name, uid string) (event string, err error) {
	a.told++
	event = fmt.Sprintf("about-%d", a.told)
	reference := map[string]any{"kind": kind, "apiVersion": "v1", "namespace": of, "name": name, "uid": uid}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Event", "metadata": map[string]any{"name": event}, "involvedObject": reference, "reason": "Tested", "type": "Normal",
	}}
	_, err = a.client.Resource(core("events")).Namespace(namespace).Create(a.t.Context(), object, metav1.CreateOptions{})
	return event, err
}

// says waits for the Event, and holds what it says of its object.
func (a *about) says(want, namespace, kind, of, name, uid string) {
	a.t.Helper()
	reported, err := a.report(namespace, kind, of, name, uid)
	if err != nil {
		a.t.Fatal(err)
	}
	a.stream.await(a.t, a.exporter, reported, func(e *event) bool {
		if e.Resource != "events" || e.Name != reported {
			return false
		}
		if !strings.Contains(e.Involved, want) || strings.Contains(e.Involved, "hidden") {
			a.t.Errorf("an Event about %s %s/%s says %s, want %s", kind, of, name, e.Involved, want)
		}
		return true
	})
}

// TestI9EventsTellOfTheirObjectAsItWasToldLast, from the state of a real API server's objects, though the exporter is
// killed; and of no object of another namespace, uid or kind, and of no label that the rules cut.
func TestI9EventsTellOfTheirObjectAsItWasToldLast(t *testing.T) {
	a := newAbout(t)
	a.exporter.start(t)
	for _, resource := range []string{"configmaps", "nodes", "secrets", "events"} {
		a.stream.awaitEnd(t, a.exporter, resource, "initial")
	}
	web := a.make("configmaps", "ConfigMap", "default", "web", map[string]any{"app": "web", "hidden": "x"})
	uid := string(web.GetUID())
	node := a.make("nodes", "Node", "", "n-1", map[string]any{"zone": "a"})
	secret := a.make("secrets", "Secret", "default", "s", map[string]any{"app": "s"})
	whole := fmt.Sprintf(`{"resourceVersion":%q,"labels":{"app":"web"}}`, web.GetResourceVersion())
	a.says(whole, "default", "ConfigMap", "default", "web", uid)
	a.says(`"labels":{"zone":"a"`, "default", "Node", "", "n-1", string(node.GetUID()))
	a.says(`{"unknown":"otheruid"}`, "default", "ConfigMap", "default", "web", "an-earlier-one")
	a.says(`{"unknown":"absent"}`, "default", "ConfigMap", "default", strings.Repeat("{", 500), uid)
	a.says(`{"unknown":"unnamed"}`, "default", "ConfigMap", "default", strings.Repeat("n", 5000), uid)
	a.says(`{"unknown":"notstreamed"}`, "default", "Secret", "default", "s", string(secret.GetUID()))
	if _, err := a.report("kube-system", "ConfigMap", "default", "web", uid); err == nil {
		t.Error("an API server takes an Event about an object of another namespace: only the exporter keeps them apart")
	}
	a.exporter.process.Kill()
	a.exporter.start(t)
	a.says(whole, "default", "ConfigMap", "default", "web", uid)
	web.SetLabels(map[string]string{"app": "web-2"})
	web.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n-1", UID: node.GetUID()}})
	web, err := a.client.Resource(core("configmaps")).Namespace("default").Update(t.Context(), web, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a.stream.await(t, a.exporter, "the new labels", func(e *event) bool { return e.ResourceVersion == web.GetResourceVersion() })
	owned := fmt.Sprintf(`"labels":{"app":"web-2"},"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n-1","uid":%q}]`, node.GetUID())
	a.says(owned, "default", "ConfigMap", "default", "web", uid)
	if err := a.client.Resource(core("configmaps")).Namespace("default").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	a.stream.await(t, a.exporter, "the delete", func(e *event) bool { return e.UID == uid && e.op() == "deleted" })
	a.says(`{"unknown":"absent"}`, "default", "ConfigMap", "default", "web", uid)
	a.exporter.stop(t)
}
