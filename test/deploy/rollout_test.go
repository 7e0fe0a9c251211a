package deploy

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubecdc/kubecdc/test/deploy/chart"
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

// TestAnotherSecretStartsThePodAnew where the release is upgraded, and what the pod does not read does not.
func TestAnotherSecretStartsThePodAnew(t *testing.T) {
	namespace := newNamespace(t)
	secrets := admin(t).CoreV1().Secrets(namespace)
	put := func(name, password string) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"password": password}}
		if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err == nil {
			return
		}
		if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	sum := func(more string) string {
		upgraded := release(namespace, "secretEnv: {P: {name: nats, key: password}}\nfiles: [{path: /etc/x, secret: kafka}]\n"+more)
		upgraded.Server = shared.Get(t).RESTConfig()
		objects, err := chart.Render(upgraded)
		if err != nil {
			t.Fatal(err)
		}
		set := find(t, objects, "StatefulSet")
		sum, _, err := unstructured.NestedString(set.Object, "spec", "template", "metadata", "annotations", "checksum/secrets")
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	none := sum("")
	put("other", "a")
	if sum("") != none {
		t.Error("a Secret of others starts the pod anew")
	}
	put("nats", "a")
	first := sum("")
	put("kafka", "a")
	second := sum("")
	put("nats", "b")
	third := sum("")
	if none == "" || first == none || second == first || third == second {
		t.Errorf("the checksums are %q, %q, %q, %q: each must differ", none, first, second, third)
	}
	if sum("restartOnSecrets: false") != "" {
		t.Error("the pod is started anew although nobody wants it")
	}
}

// TestAnotherSizeOfTheVolumeIsExplained before Kubernetes refuses the StatefulSet, and taken when that is made again.
func TestAnotherSizeOfTheVolumeIsExplained(t *testing.T) {
	namespace := newNamespace(t)
	newApplier(t).applyAll(render(t, namespace, ""))
	upgrade := func(values string) error {
		upgraded := release(namespace, values)
		upgraded.Server = shared.Get(t).RESTConfig()
		_, err := chart.Render(upgraded)
		return err
	}
	if err := upgrade("persistence: {size: 2048Mi}"); err != nil {
		t.Errorf("the same size: %v", err)
	}
	want := "persistence.size: the volume of StatefulSet kubecdc has 2Gi, and Kubernetes does not let it change to 4Gi: run kubectl -n " + namespace + " patch pvc state-kubecdc-0"
	if err := upgrade("persistence: {size: 4Gi}"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	want = "persistence.size: the volume of StatefulSet kubecdc has 2Gi, and no volume can become smaller: keep that size, or begin with a new state"
	if err := upgrade("persistence: {size: 1Gi}"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := admin(t).AppsV1().StatefulSets(namespace).Delete(t.Context(), "kubecdc", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := upgrade("persistence: {size: 4Gi}"); err != nil {
		t.Errorf("after the StatefulSet was deleted: %v", err)
	}
}
