package deploy

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/kubecdc/kubecdc/test/deploy/chart"
)

// applier applies objects as kubectl apply --server-side does, strictly.
type applier struct {
	t      *testing.T
	client dynamic.Interface
	mapper meta.RESTMapper
}

func newApplier(t *testing.T) *applier {
	t.Helper()
	config := shared.Get(t).RESTConfig()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	cached := memory.NewMemCacheClient(admin(t).Discovery())
	return &applier{t: t, client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached)}
}

func admin(t *testing.T) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(shared.Get(t).RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// apply returns the API server's word on one object. Unknown fields are errors.
func (a *applier) apply(object *unstructured.Unstructured, dryRun bool) error {
	kind := object.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	text, err := json.Marshal(object.Object)
	if err != nil {
		return err
	}
	force := true
	options := metav1.PatchOptions{FieldManager: "test", FieldValidation: metav1.FieldValidationStrict, Force: &force}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	var resource dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		resource = a.client.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	_, err = resource.Patch(a.t.Context(), object.GetName(), types.ApplyPatchType, text, options)
	return err
}

// applyAll tries all of them dryly, and then for real.
func (a *applier) applyAll(objects []*unstructured.Unstructured) {
	a.t.Helper()
	for _, dryRun := range []bool{true, false} {
		for _, object := range objects {
			if err := a.apply(object, dryRun); err != nil {
				a.t.Fatalf("%s %s, dry run %t: %v", object.GetKind(), object.GetName(), dryRun, err)
			}
		}
	}
}

// newNamespace is one that takes only pods of the strictest kind.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "deploy-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	made, err := admin(t).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Name
}

// makeNamespaces makes those that are not there.
func makeNamespaces(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := admin(t).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

// operator makes the API server take the kinds of the Prometheus operator. What is in them is checked by the
// operator's own types.
func operator(t *testing.T, a *applier) {
	t.Helper()
	for plural, kind := range map[string]string{"servicemonitors": "ServiceMonitor", "prometheusrules": "PrometheusRule"} {
		objects, err := chart.Decode(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {plural: %[1]s, kind: %[2]s}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, plural, kind))
		if err != nil {
			t.Fatal(err)
		}
		a.applyAll(objects)
	}
	eventually(t, "the API server serves the operator's kinds", func() bool {
		served, err := admin(t).Discovery().ServerResourcesForGroupVersion("monitoring.coreos.com/v1")
		return err == nil && len(served.APIResources) == 2
	})
}

// TestChartIsAcceptedByTheAPIServer in each set of values, and so is the pod that the controller would make of it,
// under the strictest of the Pod Security Standards.
func TestChartIsAcceptedByTheAPIServer(t *testing.T) {
	operator(t, newApplier(t))
	makeNamespaces(t, "shop", "billing")
	for name, values := range valueSets(t) {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			objects := render(t, namespace, values)
			newApplier(t).applyAll(objects)
			acceptPod(t, objects)
		})
	}
}

// acceptPod asks for the pod of the StatefulSet, with the volume of its claim, or for one of the Deployment.
func acceptPod(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	owner := workload(t, objects)
	template, _, err := unstructured.NestedMap(owner.Object, "spec", "template")
	if err != nil {
		t.Fatal(err)
	}
	pod := &unstructured.Unstructured{Object: template}
	pod.SetAPIVersion("v1")
	pod.SetKind("Pod")
	pod.SetName(owner.GetName() + "-0")
	pod.SetNamespace(owner.GetNamespace())
	if owner.GetKind() == "StatefulSet" {
		claim(t, owner, pod)
	}
	if err := newApplier(t).apply(pod, true); err != nil {
		t.Errorf("the pod: %v", err)
	}
}

// claim gives the pod the volume that the StatefulSet's controller would give it.
func claim(t *testing.T, set, pod *unstructured.Unstructured) {
	t.Helper()
	volumes, _, err := unstructured.NestedSlice(pod.Object, "spec", "volumes")
	if err != nil {
		t.Fatal(err)
	}
	if _, own, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates"); !own {
		volumes = volumes[1:] // it has its own
	}
	claim := map[string]any{"name": "state", "persistentVolumeClaim": map[string]any{"claimName": "state-" + pod.GetName()}}
	if err := unstructured.SetNestedSlice(pod.Object, append(volumes, claim), "spec", "volumes"); err != nil {
		t.Fatal(err)
	}
}

// TestRestrictedNamespacesRefuseOthers: the test above could not fail otherwise.
func TestRestrictedNamespacesRefuseOthers(t *testing.T) {
	objects := render(t, newNamespace(t), "")
	set := find(t, objects, "StatefulSet")
	unstructured.RemoveNestedField(set.Object, "spec", "template", "spec", "securityContext", "runAsNonRoot")
	template, _, err := unstructured.NestedMap(set.Object, "spec", "template")
	if err != nil {
		t.Fatal(err)
	}
	pod := &unstructured.Unstructured{Object: template}
	pod.SetAPIVersion("v1")
	pod.SetKind("Pod")
	pod.SetName("root")
	pod.SetNamespace(set.GetNamespace())
	if err := newApplier(t).apply(pod, true); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		t.Errorf("a pod that may be root: %v", err)
	}
}
