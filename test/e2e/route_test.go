package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestLabelsRouteAndAChangedLabelSplitsTheHistory: the subject has the label that the object has in the record, and a
// missed delete goes where the last record of the object went.
func TestLabelsRouteAndAChangedLabelSplitsTheHistory(t *testing.T) {
	r := newRig(t, nil)
	config := fmt.Sprintf(`
resources: [{resource: configmaps, before: true, filter: 'object.metadata.namespace == "default" && object.data.n >= "0"', filterFailure: deadletter}, namespaces]
sinks: [{name: bus, nats: {url: "nats://%s", stream: %s, subject: "k8s.{resource}.{label:a.b/team}.{name}", subjects: {namespaces: "ns.{name}"}}}]
`, r.broker.address(), streamName)
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	named := slices.Index(r.exporter.args, "--resources")
	r.exporter.args, r.exporter.sinks = append(slices.Delete(r.exporter.args, named, named+2), "-f", path), nil
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
