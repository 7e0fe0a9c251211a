package e2e

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// bracketKeys are what a tenant may call an attribute of a volume, or a field of a custom resource.
func bracketKeys() []string {
	return []string{`a}]}},`, `}],"name":"b","x":"`, `"managedFields":[{}]`, `\`, `"`, `]`, `}]}},{"metadata":{`, `managedFields`, `f:}]`, ":{}}]},"}
}

func bracketPod(name string, attributes map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "namespace": "default"},
		"spec": map[string]any{
			"containers": []any{map[string]any{"name": "main", "image": "example.com/none"}},
			"volumes":    []any{map[string]any{"name": "v", "csi": map[string]any{"driver": "csi.example.com", "volumeAttributes": attributes}}},
		},
	}
}

// TestI4KeysMadeOfBracketsTruncateNothing: what a tenant calls a key is no JSON, neither in a list nor in a watch, and
// every object is delivered as the API server has it.
func TestI4KeysMadeOfBracketsTruncateNothing(t *testing.T) {
	r := newWildcardRig(t, "resources: [{resource: pods, namespaces: [default]}, frees.gadgets.example.com]\n", "")
	r.define("free")
	r.made("free", "plain")
	r.bracketed("listed")
	r.exporter.start(t)
	r.delivered("listed")
	r.bracketed("watched")
	r.delivered("watched")
	if strings.Contains(r.exporter.get(t, "/metrics"), "kubecdc_source_gaps_total{") || strings.Contains(r.exporter.log(t), "stream failed") {
		t.Error("there is a gap, or a stream failed")
	}
	r.exporter.stop(t)
}

// bracketed makes a pod and a custom resource for each key, and one of each with all of them.
func (r *rig) bracketed(prefix string) {
	r.t.Helper()
	p := &plant{t: r.t, r: r}
	all := map[string]any{}
	for i, key := range bracketKeys() {
		all[key] = key
		one := map[string]any{key: "1"}
		p.create(core("pods"), bracketPod(fmt.Sprintf("%s-%d", prefix, i), one))
		r.makeFree(fmt.Sprintf("%s-%d", prefix, i), one)
	}
	p.create(core("pods"), bracketPod(prefix+"-all", all))
	r.makeFree(prefix+"-all", all)
}

// makeFree makes a custom resource that has the fields on top and below.
func (r *rig) makeFree(name string, fields map[string]any) {
	r.t.Helper()
	object := map[string]any{"apiVersion": "gadgets.example.com/v1", "kind": "Free", "metadata": map[string]any{"name": name}, "spec": map[string]any{"metadata": fields}}
	for key, value := range fields {
		object[key] = value
	}
	if _, err := r.client.Resource(gadgets("free")).Create(r.t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

// delivered wants of each object with the prefix what the API server has of it.
func (r *rig) delivered(prefix string) {
	r.t.Helper()
	for _, resource := range []schema.GroupVersionResource{core("pods"), gadgets("free")} {
		r.eachListed(resource, func(object *unstructured.Unstructured) {
			if !strings.HasPrefix(object.GetName(), prefix) {
				return
			}
			unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
			wanted, err := json.Marshal(object.Object)
			if err != nil {
				r.t.Fatal(err)
			}
			r.arrives(string(object.GetUID()), "added", "replaced")
			for _, e := range r.file.all(r.t) {
				if e.UID == string(object.GetUID()) && !sameJSON(e.Data, wanted) {
					r.t.Errorf("%s %s is told as %s\nwant %s", resource.Resource, object.GetName(), e.Data, wanted)
				}
			}
		})
	}
}

// sameJSON says whether both mean the same.
func sameJSON(a, b []byte) bool {
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}
