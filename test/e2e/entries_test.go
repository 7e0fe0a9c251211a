package e2e

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestI9TheFirstEntryOfAnObjectDecides in a real cluster: objects of one resource by namespace, by labels, and the
// rest. An object whose labels change gets the other rules, and so does what is said of it as it was.
func TestI9TheFirstEntryOfAnObjectDecides(t *testing.T) {
	r := newWildcardRig(t, `resources:
  - {resource: configmaps, namespaces: [payments], redact: [.data], before: true}
  - {resource: configmaps, labelSelector: "app in (hidden)", drop: [.data], before: true}
  - {resource: configmaps, before: true, ops: [added, updated], filter: 'object.metadata.namespace == "shop" || object.metadata.namespace == "payments"'}
`, "dev")
	for _, name := range []string{"payments", "shop"} {
		r.make(core("namespaces"), map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}})
	}
	r.starts()
	r.file.await(t, r.exporter, "the end of the first snapshot", func(e *event) bool { return e.op() == "snapshot.end" })
	of := func(name, namespace, app, value string) made {
		o := configMapOf(name, map[string]any{"app": app})
		o["data"] = map[string]any{"v": value}
		return r.object(namespace, o)
	}
	paid, hidden, open := of("one", "payments", "hidden", "bare"), of("two", "shop", "hidden", "bare"), of("three", "shop", "web", "shown")
	for _, m := range []made{paid, hidden, open} {
		r.arrives(m.UID(), "added")
	}
	// What was open when it was said is hidden from the change on with which it becomes so.
	becomes := r.relabel(open, "hidden")
	r.file.await(t, r.exporter, "the object that becomes hidden", func(e *event) bool { return e.UID == open.UID() && e.ResourceVersion == becomes })
	if err := r.client.Resource(hidden.resource).Namespace("shop").Delete(t.Context(), hidden.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.arrives(hidden.UID(), "deleted")
	r.exporter.stop(t)

	said := map[string][]string{}
	for _, e := range r.file.all(t) {
		text := string(e.Data) + e.Before
		if strings.Contains(text, "bare") || e.UID == open.UID() && e.op() != "added" && strings.Contains(text, "shown") {
			t.Errorf("a value that its entry forbids is told:\n%s %s", &e, text)
		}
		said[e.UID] = append(said[e.UID], e.op())
		if e.UID == paid.UID() && !strings.Contains(text, "hmac-sha256:") {
			t.Errorf("no hash in %s", text)
		}
	}
	for what, c := range map[string]struct {
		of   made
		want []string
	}{
		"of the namespace": {paid, []string{"added"}}, "hidden": {hidden, []string{"added", "deleted"}}, "shown once": {open, []string{"added", "updated"}},
	} {
		if got := said[c.of.UID()]; !slices.Equal(got, c.want) {
			t.Errorf("%s: told as %q, want %q", what, got, c.want)
		}
	}
}
