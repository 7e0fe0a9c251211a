package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func apiServices() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
}

// TestI4AGroupThatIsDownIsNotGone: the API server hands the group over to one that nobody reaches. Nothing is deleted,
// over a restart of the exporter either, the others go on, and so does the group when it is back.
func TestI4AGroupThatIsDownIsNotGone(t *testing.T) {
	r := newWildcardRig(t, "resources: ['*.gadgets.example.com', '*.example.com']\n", "dev")
	r.define("gear")
	r.defineWidgets()
	before := r.made("gear", "a")
	r.starts()
	r.arrives(before, "replaced")

	r.takeDown()
	r.eventuallyPage("the group is down", func(p page) bool { return strings.Contains(p.Discovery.LastError, "gadgets.example.com/v1") })
	r.arrives(r.widget("while-down"), "added", "replaced")
	r.exporter.stop(t)
	r.starts()
	r.eventuallyPage("gears wait", func(p page) bool { return p.Streams["gears.gadgets.example.com"].State == "waiting" && p.Ready })
	r.arrives(r.widget("still-down"), "added", "replaced")

	if err := r.client.Resource(apiServices()).Delete(t.Context(), "v1.gadgets.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.arrives(r.made("gear", "b"), "added", "replaced")
	r.eventuallyPage("all is told", func(p page) bool { return p.Discovery.LastError == "" })
	r.exporter.stop(t)
	for _, e := range r.file.all(t) {
		if e.op() == "deleted" {
			t.Errorf("told as deleted, and is there:\n%s", &e)
		}
	}
	r.once(before, "replaced")
}

// takeDown gives the group of the gadgets to a service that does not exist.
func (r *rig) takeDown() {
	r.t.Helper()
	const name = "v1.gadgets.example.com"
	eventually(r.t, deliveryLimit, "the group is another server's", func() bool {
		service, err := r.client.Resource(apiServices()).Get(r.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		service.SetLabels(nil) // the API server leaves alone what is not its own
		spec := service.Object["spec"].(map[string]any)
		spec["service"] = map[string]any{"namespace": "default", "name": "nobody"}
		spec["insecureSkipTLSVerify"] = true
		_, err = r.client.Resource(apiServices()).Update(r.t.Context(), service, metav1.UpdateOptions{})
		return err == nil
	})
}

// widget makes a widget and returns its uid.
func (r *rig) widget(name string) string {
	r.t.Helper()
	manifest := widget()
	manifest["metadata"] = map[string]any{"name": name}
	return string(r.create(widgets(), "default", manifest).GetUID())
}
