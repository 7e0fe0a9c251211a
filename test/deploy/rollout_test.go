package deploy

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestAnotherConfigurationStartsThePodAnew, and other values do not: the exporter reads its configuration when it
// starts.
func TestAnotherConfigurationStartsThePodAnew(t *testing.T) {
	template := func(values string) string {
		template, _, err := unstructured.NestedMap(find(t, render(t, "x", values), "StatefulSet").Object, "spec", "template", "metadata")
		if err != nil {
			t.Fatal(err)
		}
		sum, found, err := unstructured.NestedString(template, "annotations", "checksum/config")
		if err != nil || !found {
			t.Fatalf("the pods have no checksum: %v, %v", template, err)
		}
		return sum
	}
	first := template("")
	if same := template("serviceMonitor: {enabled: true}"); same != first {
		t.Error("a ServiceMonitor starts the pod anew")
	}
	if other := template("config: {cluster: b}"); other == first {
		t.Error("another configuration does not start the pod anew")
	}
}

// TestStopIsGivenTheTimeThatItTakes: the exporter's own deadline, and what is left of the pod's, say so.
func TestStopIsGivenTheTimeThatItTakes(t *testing.T) {
	seconds, _, err := unstructured.NestedInt64(find(t, render(t, "x", ""), "StatefulSet").Object, "spec", "template", "spec", "terminationGracePeriodSeconds")
	if err != nil || seconds < 25 {
		t.Errorf("%d s, %v: the exporter drains for 20 s", seconds, err)
	}
}
