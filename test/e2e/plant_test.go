package e2e

import (
	"encoding/base64"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// plant puts values into the cluster that must not be seen again.
type plant struct {
	t      *testing.T
	r      *rig
	values []string
	outlet outlet // where values may go
}

// many are values that are large together.
func (p *plant) many(n int) map[string]any {
	values := map[string]any{}
	for i := range n {
		values[fmt.Sprintf("k%d", i)] = p.value()
	}
	return values
}

func secrets() schema.GroupVersionResource { return core("secrets") }

// value makes a new one.
func (p *plant) value() string {
	v := fmt.Sprintf("planted-%d-value", len(p.values))
	p.values = append(p.values, v)
	return v
}

func (p *plant) secret(name string) {
	p.t.Helper()
	p.create(secrets(), map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": p.metadata(name),
		"data": map[string]any{"a": base64.StdEncoding.EncodeToString([]byte(p.value()))}, "stringData": map[string]any{"b": p.value()},
	})
}

func (p *plant) config(name string) {
	p.t.Helper()
	p.create(core("configmaps"), map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"name": name, "namespace": "default", "annotations": map[string]any{lastApplied: `{"data":{"token":"` + p.value() + `"}}`},
		},
		"data": map[string]any{"token": p.value(), "plain": "x"},
	})
}

func (p *plant) create(resource schema.GroupVersionResource, manifest map[string]any) {
	p.t.Helper()
	p.r.create(resource, "default", manifest)
}

// metadata has a copy of the values in the annotation of kubectl apply.
func (p *plant) metadata(name string) map[string]any {
	return map[string]any{
		"name": name, "namespace": "default",
		"annotations": map[string]any{
			lastApplied:                      `{"data":{"a":"` + p.value() + `"}}`,
			"kapp.k14s.io/original":          `{"data":{"a":"` + base64.StdEncoding.EncodeToString([]byte(p.value())) + `"}}`,
			"objectset.rio.cattle.io/a-copy": p.value(),
		},
	}
}

func (p *plant) update(resource schema.GroupVersionResource, name string) {
	p.t.Helper()
	patch := fmt.Sprintf(`{"stringData":{"b":%q}}`, p.value())
	if resource.Resource == "configmaps" {
		patch = fmt.Sprintf(`{"data":{"token":%q}}`, p.value())
	}
	_, err := p.r.client.Resource(resource).Namespace("default").Patch(p.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *plant) remove(name string) {
	p.t.Helper()
	if err := p.r.client.Resource(secrets()).Namespace("default").Delete(p.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

// forget lets the API server forget what it has not told yet.
func (p *plant) forget() {
	p.t.Helper()
	if _, err := p.r.cluster.Compact(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	p.r.restartAPIServer()
}
