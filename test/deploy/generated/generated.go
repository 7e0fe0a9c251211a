// Package generated makes the files that are made from others: the part of the chart's schema that is the exporter's
// own configuration, and the manifests for kustomize, which are what the chart renders.
package generated

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubecdc/kubecdc/test/deploy/chart"
	"github.com/kubecdc/kubecdc/test/reference"
)

// Paths below the root of the project.
const (
	Chart     = "deploy/helm/kubecdc"
	Manifests = "deploy/manifests"
)

// note is the first line of a generated file.
const note = "# Made from the chart in deploy/helm/kubecdc by make manifests.\n"

// Schema is the chart's schema as it is, with the configuration's part made anew.
func Schema(root string) (path string, content []byte, err error) {
	path = filepath.Join(Chart, "values.schema.json")
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return "", nil, err
	}
	var values struct {
		Schema string                     `json:"$schema"`
		Title  string                     `json:"title"`
		Type   string                     `json:"type"`
		More   bool                       `json:"additionalProperties"`
		Needs  []string                   `json:"required"`
		Keys   map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(text, &values); err != nil {
		return "", nil, fmt.Errorf("read the chart's schema: %w", err)
	}
	if values.Keys["config"], err = json.Marshal(configSchema()); err != nil {
		return "", nil, err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err = encoder.Encode(values)
	return path, out.Bytes(), err
}

// configSchema is that of the exporter, and what a pod needs beside it.
func configSchema() reference.Schema {
	of := reference.JSONSchema()
	of["description"] = "The exporter's configuration, passed through as it is. Values may hold ${NAME}, of secretEnv."
	of["required"] = []string{"resources", "sinks", "state", "listen"}
	of["anyOf"] = []any{reference.Schema{"required": []string{"cluster"}}, reference.Schema{"required": []string{"clusters"}}}
	keys := of["properties"].(reference.Schema)
	// In a pod there is no kubeconfig with a name, and two clusters of one name mix up their objects for every
	// consumer.
	keys["cluster"].(reference.Schema)["description"] = "The exporter's cluster: a name that no other cluster has. It is in every record and in topics and subjects."
	keys["cluster"].(reference.Schema)["pattern"] = `\S`
	for _, list := range []string{"resources", "sinks"} {
		keys[list].(reference.Schema)["minItems"] = 1
	}
	// Probes, Prometheus and the API server come from outside of the pod, to ports that the manifests name.
	const anywhere = `^(0\.0\.0\.0|\[::\])?:[1-9][0-9]{0,4}$`
	keys["listen"].(reference.Schema)["pattern"] = anywhere
	audit := keys["audit"].(reference.Schema)
	audit["required"] = []string{"listen"}
	audit["properties"].(reference.Schema)["listen"].(reference.Schema)["pattern"] = anywhere
	state := keys["state"].(reference.Schema)
	state["required"] = []string{"dir"}
	state["properties"].(reference.Schema)["dir"].(reference.Schema)["pattern"] = "^/.+"
	return of
}

// base are the objects that every cluster takes; monitoring has those of the Prometheus operator.
func base(kind string) bool { return kind != "ServiceMonitor" && kind != "PrometheusRule" }

// Kustomize returns the manifests by their paths: what the chart renders with its own values, in namespace kubecdc.
func Kustomize(root string) (map[string][]byte, error) {
	objects, err := chart.Render(chart.Release{
		Dir: filepath.Join(root, Chart), Name: "kubecdc", Namespace: "kubecdc", Cluster: "${CLUSTER}",
		Values: "serviceMonitor: {enabled: true}\nprometheusRule: {enabled: true}\n",
	})
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	var resources, monitoring []string
	for _, object := range objects {
		if object.GetAnnotations()["helm.sh/hook"] != "" {
			continue // helm test
		}
		forget(object)
		if err := anyRelease(object); err != nil {
			return nil, err
		}
		if object.GetKind() == "ConfigMap" {
			text, _, err := unstructured.NestedString(object.Object, "data", "config.yaml")
			if err != nil {
				return nil, err
			}
			files[filepath.Join(Manifests, "config.yaml")] = []byte(text)
			continue
		}
		file := map[string]string{
			"ClusterRole": "rbac.yaml", "ClusterRoleBinding": "rbac.yaml", "PodDisruptionBudget": "poddisruptionbudget.yaml", "Service": "service.yaml",
			"ServiceAccount": "serviceaccount.yaml", "StatefulSet": "statefulset.yaml", "ServiceMonitor": "servicemonitor.yaml", "PrometheusRule": "prometheusrule.yaml",
		}[object.GetKind()]
		if file == "" {
			return nil, fmt.Errorf("sort the rendered %s into a file: no file is known for it", object.GetKind())
		}
		dir, list := Manifests, &resources
		if !base(object.GetKind()) {
			dir, list = filepath.Join(Manifests, "monitoring"), &monitoring
		}
		if err := add(files, filepath.Join(dir, file), object); err != nil {
			return nil, err
		}
		if n := len(*list); n == 0 || (*list)[n-1] != file {
			*list = append(*list, file)
		}
	}
	files[filepath.Join(Manifests, "namespace.yaml")] = []byte(note + namespace)
	files[filepath.Join(Manifests, "kustomization.yaml")] = []byte(kustomization(resources))
	files[filepath.Join(Manifests, "monitoring", "kustomization.yaml")] = []byte(component(monitoring))
	return files, nil
}

// anyRelease makes an alert on the release one on any: an overlay may change the namespace.
func anyRelease(object *unstructured.Unstructured) error {
	if object.GetKind() != "PrometheusRule" {
		return nil
	}
	text, err := json.Marshal(object.Object)
	if err != nil {
		return err
	}
	own := regexp.MustCompile(`absent\(kubecdc_build_info\{[^}]*\}\)`)
	return json.Unmarshal(own.ReplaceAll(text, []byte("absent(kubecdc_build_info)")), &object.Object)
}

// forget leaves out what is Helm's: kustomize's own ConfigMap is named after its content, so that a change starts the
// pod anew.
func forget(object *unstructured.Unstructured) {
	labels := object.GetLabels()
	delete(labels, "helm.sh/chart")
	delete(labels, "app.kubernetes.io/managed-by")
	object.SetLabels(labels)
	unstructured.RemoveNestedField(object.Object, "spec", "template", "metadata", "annotations")
}

func add(files map[string][]byte, path string, object *unstructured.Unstructured) error {
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if files[path] == nil {
		files[path] = []byte(note)
	} else {
		files[path] = append(files[path], "---\n"...)
	}
	files[path] = append(files[path], text...)
	return nil
}

const namespace = `apiVersion: v1
kind: Namespace
metadata:
  name: kubecdc
  labels:
    pod-security.kubernetes.io/enforce: restricted
`

func kustomization(resources []string) string {
	text := note + `# In an overlay, replace config.yaml, and in rbac.yaml the rules that follow from its resources. The cluster needs a name
# that no other one has: as it is, the exporter stops and asks for it.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: kubecdc
resources:
  - namespace.yaml
`
	for _, file := range resources {
		text += "  - " + file + "\n"
	}
	return text + `configMapGenerator:
  - name: kubecdc
    files: [config.yaml]
# With the Prometheus operator:
# components: [monitoring]
`
}

func component(resources []string) string {
	text := note + `apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
resources:
`
	for _, file := range resources {
		text += "  - " + file + "\n"
	}
	return text
}
