package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// TestLabelsRouteAndAChangedLabelSplitsTheHistory: the subject has the label that the object has in the record, and a
// missed delete goes where the last record of the object went.
func TestLabelsRouteAndAChangedLabelSplitsTheHistory(t *testing.T) {
	r := newRig(t)
	r.configured(fmt.Sprintf(`
resources: [{resource: configmaps, before: true, filter: 'object.metadata.namespace == "default" && object.data.n >= "0"', filterFailure: deadletter}, namespaces]
sinks: [{name: bus, nats: {url: "nats://%s", stream: %s, subject: "k8s.{resource}.{label:a.b/team}.{name}", subjects: {namespaces: "ns.{name}"}}}]
`, r.broker.address(), streamName))
	r.exporter.start(t)
	for _, resource := range []string{"configmaps", "namespaces"} {
		r.stream.awaitEnd(t, r.exporter, resource, "initial")
	}

	p := plant{t: t, r: r}
	p.create(core("configmaps"), map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"n": "1"},
		"metadata": map[string]any{"name": "moves", "namespace": "default", "labels": map[string]any{"a.b/team": "x.y"}},
	})
	configMaps := r.client.Resource(core("configmaps")).Namespace("default")
	patch := func(text string) {
		t.Helper()
		if _, err := configMaps.Patch(t.Context(), "moves", types.MergePatchType, []byte(text), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch(`{"metadata":{"labels":{"a.b/team":"z"}}}`)
	patch(`{"data":{"n":null}}`) // what the filter does not expect
	r.stream.await(t, r.exporter, "the gap", func(e *event) bool { return e.op() == "gap" && e.Name == "moves" })
	if n := r.exporter.metric(t, `kubecdc_source_misshapen_total{resource="configmaps"}`); n < 1 {
		t.Errorf("%v failures of the filter are counted", n)
	}
	r.exporter.stop(t)
	if err := configMaps.Delete(t.Context(), "moves", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.forget()
	r.exporter.start(t)
	r.stream.await(t, r.exporter, "the missed delete", func(e *event) bool { return e.FinalStateUnknown && e.Name == "moves" })
	r.exporter.stop(t)

	var routed []string
	for i := range r.stream.events {
		if e := &r.stream.events[i]; e.Name == "moves" || e.Name == "kube-system" {
			routed = append(routed, e.op()+" "+e.routed)
		}
	}
	const want = "replaced ns.kube-system, added k8s.configmaps.x_y.moves, updated k8s.configmaps.z.moves, gap k8s.configmaps.-.moves, deleted k8s.configmaps.z.moves"
	if got := strings.Join(routed, ", "); got != want {
		t.Errorf("the records went to\n%s\nwant\n%s", got, want)
	}
}

// TestI4LabelsOfNamespacesRouteAndAChangeMovesTheirObjects, also one that happens while nobody looks, and an object's
// end goes where the object was, although its namespace is gone by then.
func TestI4LabelsOfNamespacesRouteAndAChangeMovesTheirObjects(t *testing.T) {
	r := newRig(t)
	inKafka, lake := map[string]*follower{}, ""
	if kafka.Available(t.Context()) == nil || kafka.Required() {
		c := kafka.Start(t, kafka.Options{})
		lake = fmt.Sprintf("  - {name: lake, kafka: {brokers: [%s], topic: %q}}", strings.Join(c.Brokers(), ", "), lakePrefix+"{namespaceLabel:a.b/team}")
		for _, team := range []string{"x", "y", "z"} {
			inKafka[team] = followPrefix(c, lakeName, lakePrefix+team)
		}
	}
	r.configured(fmt.Sprintf(`
resources: [{resource: configmaps, filter: 'namespaceObject.metadata.labels[?"audited"].orValue("yes") == "yes"'}]
sinks:
  - {name: bus, nats: {url: "nats://%s", stream: %s, subject: "k8s.{namespaceLabel:a.b/team}.{namespace}.{name}"}}
%s
`, r.broker.address(), streamName, lake))
	r.exporter.start(t)
	r.stream.awaitEnd(t, r.exporter, "configmaps", "initial")

	ctx := t.Context()
	namespaces, configMaps := r.client.Resource(core("namespaces")), r.client.Resource(core("configmaps")).Namespace("studio")
	label := func(text string) {
		t.Helper()
		if _, err := namespaces.Patch(ctx, "studio", types.MergePatchType, []byte(`{"metadata":{"labels":`+text+`}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	awaits := func(op, team, name string) {
		t.Helper()
		what := fmt.Sprintf("%s k8s.%s.studio.%s", op, team, name)
		r.stream.await(t, r.exporter, what, func(e *event) bool { return e.op()+" "+e.routed == what })
		if topic := inKafka[team]; topic != nil {
			topic.await(t, r.exporter, what+" in Kafka", func(e *event) bool { return e.op() == op && e.Name == name })
		}
	}
	ends := func(n int) {
		t.Helper()
		r.stream.await(t, r.exporter, fmt.Sprintf("the end of snapshot %d", n), func(e *event) bool {
			if e.op() == "snapshot.end" {
				n--
			}
			return n == 0
		})
	}
	r.create(core("namespaces"), "", coreObject("Namespace", "studio", map[string]any{"a.b/team": "x"}))
	r.create(core("configmaps"), "studio", coreObject("ConfigMap", "moves", nil))
	awaits("added", "x", "moves")
	label(`{"a.b/team":"y","other":"1"}`)
	awaits("sync", "y", "moves")
	ends(2) // the first one's, and that of what the label chooses
	label(`{"audited":"no"}`)
	ends(3) // so the label is known: an object of the same moment may go by the one before
	r.create(core("configmaps"), "studio", coreObject("ConfigMap", "hidden", nil))
	r.stream.awaitObjects(t, r.exporter, r.touched("behind")) // so the filter has seen the one before
	label(`{"audited":null}`)
	awaits("sync", "y", "hidden")
	r.exporter.process.Kill()
	label(`{"a.b/team":"z"}`)
	r.exporter.start(t)
	awaits("sync", "z", "moves")
	awaits("sync", "z", "hidden")
	r.exporter.process.Kill()
	if err := configMaps.Delete(ctx, "moves", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := namespaces.Delete(ctx, "studio", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	shop, err := namespaces.Get(ctx, "studio", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	unstructured.RemoveNestedField(shop.Object, "spec", "finalizers") // no controller does it here
	if _, err := namespaces.Update(ctx, shop, metav1.UpdateOptions{}, "finalize"); err != nil {
		t.Fatal(err)
	}
	r.exporter.start(t)
	awaits("deleted", "z", "moves")
	r.exporter.stop(t)
	for i := range r.stream.events {
		if e := &r.stream.events[i]; e.Name == "hidden" && e.op() == "added" {
			t.Errorf("a filter by the namespace lets %s go on", e.routed)
		}
	}
}
