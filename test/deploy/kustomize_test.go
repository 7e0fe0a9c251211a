package deploy

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/test/deploy/chart"
	"github.com/kubecdc/kubecdc/test/deploy/generated"
)

// TestManifestsAreAcceptedByTheAPIServer: as kustomize builds them, with the component for the Prometheus operator.
func TestManifestsAreAcceptedByTheAPIServer(t *testing.T) {
	a := newApplier(t)
	operator(t, a)
	objects := kustomize(t, `
resources: [../manifests]
components: [../manifests/monitoring]
`)
	a = newApplier(t)
	for _, object := range objects {
		if object.GetKind() == "Namespace" {
			a.applyAll([]*unstructured.Unstructured{object})
		}
	}
	a.applyAll(objects)
	acceptPod(t, objects)
}

// TestManifestsStartThePodAnewForAnotherConfiguration: the ConfigMap's name is of its content.
func TestManifestsStartThePodAnewForAnotherConfiguration(t *testing.T) {
	name := func(overlay string) string {
		objects := kustomize(t, overlay)
		volumes, _, err := unstructured.NestedSlice(find(t, objects, "StatefulSet").Object, "spec", "template", "spec", "volumes")
		if err != nil {
			t.Fatal(err)
		}
		mounted, _, err := unstructured.NestedString(volumes[0].(map[string]any), "configMap", "name")
		if made := find(t, objects, "ConfigMap").GetName(); err != nil || made != mounted {
			t.Errorf("ConfigMap %s, mounted %q: %v", made, mounted, err)
		}
		return mounted
	}
	as, changed := name("resources: [../manifests]"), name(`
resources: [../manifests]
configMapGenerator: [{name: kubecdc, namespace: kubecdc, behavior: replace, literals: ["config.yaml=cluster: b"]}]
`)
	if as == changed {
		t.Errorf("both are %s", as)
	}
}

// TestManifestsAskForTheClustersName: two clusters of one name would mix up their objects for every consumer.
func TestManifestsAskForTheClustersName(t *testing.T) {
	file := filepath.Join(root, generated.Manifests, "config.yaml")
	_, err := config.Load(file, func(string) (string, bool) { return "", false })
	if err == nil || !strings.Contains(err.Error(), "cluster (line 1): environment variable CLUSTER is not set") {
		t.Errorf("without a name: %v", err)
	}
}

// kustomize builds an overlay of the manifests.
func kustomize(t *testing.T, overlay string) []*unstructured.Unstructured {
	t.Helper()
	files, err := generated.Kustomize(root)
	if err != nil {
		t.Fatal(err)
	}
	disk := filesys.MakeFsInMemory()
	for name := range files {
		if err := disk.WriteFile("/manifests"+name[len(generated.Manifests):], []byte(read(t, name))); err != nil {
			t.Fatal(err)
		}
	}
	if err := disk.WriteFile("/overlay/kustomization.yaml", []byte(overlay)); err != nil {
		t.Fatal(err)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, "/overlay")
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := chart.Decode(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}
