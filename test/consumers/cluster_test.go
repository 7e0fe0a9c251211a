package consumers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/kubecdc/kubecdc/test/testcluster"
)

// The resources, by kubectl's names.
const (
	configMaps   = "configmaps"
	secrets      = "secrets"
	clusterRoles = "clusterroles.rbac.authorization.k8s.io"
	widgets      = "widgets.example.com"
)

func resources() map[string]schema.GroupVersionResource {
	return map[string]schema.GroupVersionResource{
		configMaps:   {Version: "v1", Resource: "configmaps"},
		secrets:      {Version: "v1", Resource: "secrets"},
		clusterRoles: {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		widgets:      {Group: "example.com", Version: "v1", Resource: "widgets"},
	}
}

// writer changes objects of a cluster. A namespace of "" is a cluster-scoped object's.
type writer struct {
	t      *testing.T
	client dynamic.Interface
}

func (w *writer) on(resource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return w.client.Resource(resources()[resource])
	}
	return w.client.Resource(resources()[resource]).Namespace(namespace)
}

// create makes an object of a JSON text that lacks its metadata's name.
func (w *writer) create(resource, namespace, name, text string) {
	w.t.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(text)); err != nil {
		w.t.Fatal(err)
	}
	object.SetName(name)
	// A new definition is served a moment after it was made.
	err := wait.PollUntilContextTimeout(w.t.Context(), 50*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		_, err := w.on(resource, namespace).Create(ctx, object, metav1.CreateOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *writer) patch(resource, namespace, name, text string) {
	w.t.Helper()
	if _, err := w.on(resource, namespace).Patch(w.t.Context(), name, types.MergePatchType, []byte(text), metav1.PatchOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *writer) remove(resource, namespace, name string) {
	w.t.Helper()
	if err := w.on(resource, namespace).Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// define makes the custom resource.
func (w *writer) define() {
	w.t.Helper()
	definition := &unstructured.Unstructured{}
	err := definition.UnmarshalJSON([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`))
	if err != nil {
		w.t.Fatal(err)
	}
	kinds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if _, err := w.client.Resource(kinds).Create(w.t.Context(), definition, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.create(widgets, "default", "first", `{"apiVersion":"example.com/v1","kind":"Widget","spec":{"size":9007199254740993}}`)
}

// populate makes what the exporter finds when it starts.
func (w *writer) populate() {
	w.t.Helper()
	w.define()
	for i := range 5 {
		w.create(configMaps, "default", fmt.Sprintf("map-%d", i), `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"labels":{"app":"web"}},"data":{"a":"1","text":"é \u2028 😀 \"\\ <&>"}}`)
	}
	w.create(secrets, "default", "db", `{"apiVersion":"v1","kind":"Secret","data":{"password":"czNjcjN0LXBsYW50ZWQ="}}`)
	for _, name := range []string{"test:a b", "té", `a"b\c`, "😀"} {
		w.create(clusterRoles, "", name, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`)
	}
}

// change does each kind of change while the exporter watches.
func (w *writer) change() {
	w.t.Helper()
	for i := range 3 {
		w.patch(configMaps, "default", "map-0", fmt.Sprintf(`{"data":{"a":"%d"}}`, i+2))
	}
	w.patch(configMaps, "default", "map-1", `{"metadata":{"labels":{"app":null,"team":"a"},"annotations":{"metadata":"{\"name\":\"other\"}","managedFields":"kept"}},"data":null}`)
	w.remove(configMaps, "default", "map-2")
	w.remove(configMaps, "default", "map-3")
	// another uid
	w.create(configMaps, "default", "map-3", `{"apiVersion":"v1","kind":"ConfigMap","data":{"again":"1"}}`)
	w.patch(widgets, "default", "first", `{"spec":{"size":-9223372036854775808,"deep":{"a":[[{"b":[]}]]},"nothing":{}}}`)
	w.create(widgets, "default", "second", `{"apiVersion":"example.com/v1","kind":"Widget","spec":{"size":9007199254740993}}`)
	w.patch(secrets, "default", "db", `{"data":{"user":"cGxhbnRlZA=="}}`)
	w.remove(clusterRoles, "", "test:a b")
	w.patch(clusterRoles, "", "té", `{"rules":[]}`)
}

// forget changes what the exporter does not see, and lets the server forget it.
func (w *writer) forget(cluster *testcluster.Cluster) {
	w.t.Helper()
	w.remove(configMaps, "default", "map-4")
	w.patch(configMaps, "default", "map-0", `{"data":{"a":"unseen"}}`)
	restartAPIServer(w.t, cluster)
}

// restartAPIServer lets the server forget its history.
func restartAPIServer(t *testing.T, cluster *testcluster.Cluster) {
	t.Helper()
	if err := errors.Join(cluster.StopAPIServer(), cluster.StartAPIServer(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// table is objects by "resource namespace/name", less what the exporter cuts.
type table map[string]map[string]any

func key(resource, namespace, name string) string { return resource + " " + namespace + "/" + name }

// list is what the cluster has of the resources.
func (w *writer) list(resources map[string]schema.GroupVersionResource) table {
	w.t.Helper()
	all := table{}
	for resource, gvr := range resources {
		found, err := w.client.Resource(gvr).List(w.t.Context(), metav1.ListOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, item := range found.Items {
			item.SetManagedFields(nil)
			text, err := item.MarshalJSON()
			if err != nil {
				w.t.Fatal(err)
			}
			all[key(resource, item.GetNamespace(), item.GetName())] = comparable(w.t, text)
		}
	}
	return all
}

// comparable is an object whose numbers are their digits, and in which the values of a Secret are what of them can be
// compared: that they are there.
func comparable(t *testing.T, text []byte) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		t.Fatalf("read %s: %v", text, err)
	}
	if data, found := object["data"].(map[string]any); found && object["kind"] == "Secret" {
		for name := range data {
			data[name] = "a value"
		}
	}
	if strings.Contains(string(text), "czNjcjN0LXBsYW50ZWQ=") && strings.Contains(string(text), "hmac-sha256:") {
		t.Errorf("a Secret is redacted in part: %s", text)
	}
	return object
}
