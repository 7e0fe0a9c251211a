package e2e

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is a resource that the writer changes.
type kind struct {
	resource  schema.GroupVersionResource
	namespace string // "" where the resource is cluster-scoped
	names     []string
	// manifest is a new object, without its metadata.
	manifest func() map[string]any
	// finalized objects have a finalizer, so that their delete takes two requests.
	finalized bool
	// apps are the values of the label that its objects have, another one with each change; nil is no label.
	apps []string
}

// appLabel is what selectors choose by.
const appLabel = "app"

// name is the resource in kubectl's form.
func (k *kind) name() string { return kubectlName(k.resource) }

func kubectlName(resource schema.GroupVersionResource) string {
	if resource.Group == "" {
		return resource.Resource
	}
	return resource.Resource + "." + resource.Group
}

// namespaces are where the writer's objects are. In a list, shop-2 comes before shop, since '-' is below '/'.
var namespaces = []string{"shop", "shop-2"}

func kinds() []*kind {
	return []*kind{
		{resource: core("pods"), namespace: "shop", names: numbered("pod", 8), manifest: pod},
		{resource: core("configmaps"), namespace: "shop", names: numbered("map", 8), manifest: configMap},
		{resource: core("configmaps"), namespace: "shop-2", names: numbered("map", 4), manifest: configMap, finalized: true},
		{resource: rbac("clusterroles"), names: oddNames(), manifest: role},
		{resource: rbac("roles"), namespace: "shop", names: oddNames(), manifest: role},
		{resource: widgets(), namespace: "shop-2", names: numbered("widget", 8), manifest: widget},
		{resource: widgets(), namespace: "shop", names: numbered("widget", 4), manifest: widget, finalized: true},
	}
}

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

func rbac(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource}
}

func widgets() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
}

// definitions are where widgets are defined.
func definitions() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

func numbered(prefix string, n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%s-%d", prefix, i))
	}
	return names
}

// oddNames are allowed for RBAC's resources only.
func oddNames() []string {
	return []string{"system:node:a b", "té", "Upper.Case", "e2e:a:b", "ta b", "ta.b", "ta-b", `a"b\c`, "😀"}
}

func pod() map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "example.com/main:1"}}},
	}
}

// configMap is large enough that many of them do not fit into one read.
func configMap() map[string]any {
	text := "<&> \u2028 \"quoted\" \\ \n té 😀"
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"data": map[string]any{"text": text, "large": strings.Repeat(text, 200)},
	}
}

func role() map[string]any {
	return map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
		"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}},
	}
}

// widget has a field that the server writes before metadata.
func widget() map[string]any {
	return map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"data": map[string]any{"metadata": map[string]any{"uid": "not-mine", "resourceVersion": "1"}},
		"spec": map[string]any{"size": int64(9007199254740993)},
	}
}

// widgetDefinition is the custom resource's definition.
func widgetDefinition() map[string]any {
	free := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": free},
			}},
		},
	}
}
