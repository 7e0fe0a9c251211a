package people

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/avro"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecdc/kubecdc/internal/format/openapi"
	"github.com/kubecdc/kubecdc/internal/format/typed"
	"github.com/kubecdc/kubecdc/test/objects"
)

// get is what the API server answers.
func (r *rig) get(path string) []byte {
	r.t.Helper()
	answer, err := r.client.CoreV1().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").Do(r.t.Context()).Raw()
	if err != nil {
		r.t.Fatalf("get %s: %v", path, err)
	}
	return answer
}

// post makes an object.
func (r *rig) post(path string, object []byte) {
	r.t.Helper()
	if err := r.client.CoreV1().RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(object).Do(r.t.Context()).Error(); err != nil {
		r.t.Fatalf("make %.200s: %v", object, err)
	}
}

// define installs CRDs of well-known projects, and waits until the server describes them.
func (r *rig) define() {
	r.t.Helper()
	definitions, err := objects.Definitions()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, d := range definitions {
		r.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", d.Text)
		eventually(r.t, d.Kind+" is described", func() bool {
			for version := range d.Versions {
				answer, err := r.client.CoreV1().RESTClient().Get().AbsPath("/openapi/v3/apis", d.Group, version).Do(r.t.Context()).Raw()
				if err != nil || !strings.Contains(string(answer), `"kind":"`+d.Kind+`"`) {
					return false
				}
			}
			return true
		})
	}
}

// TestSchemasOfARunningServer shows and exports the schemas of everything that it serves, custom resources too.
func TestSchemasOfARunningServer(t *testing.T) {
	r := newRig(t, "schemas")
	r.define()
	shown := r.run("schema", "show", "deployments.apps")
	if shown.Code != 0 || shown.Stderr != "" {
		t.Fatalf("schema show ends with %d: %s", shown.Code, shown.Stderr)
	}
	if _, err := avro.Parse(shown.Stdout); err != nil || !strings.Contains(shown.Stdout, `"name": "io.k8s.api.apps.v1.Deployment"`) {
		t.Errorf("%v: %.2000s", err, shown.Stdout)
	}
	shown = r.run("schema", "show", "certificates", "--as", "jsonschema")
	if !json.Valid([]byte(shown.Stdout)) || !strings.Contains(shown.Stdout, `"dnsNames"`) {
		t.Errorf("schema show ends with %d: %s %.1000s", shown.Code, shown.Stderr, shown.Stdout)
	}
	exported := r.run("schema", "export", r.path("all"), "--as", "avro")
	if exported.Code != 0 {
		t.Fatalf("schema export ends with %d: %s", exported.Code, exported.Stderr)
	}
	files := strings.Fields(exported.Stdout)
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(r.path("all"), file))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := avro.Parse(string(text)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, want := range []string{"pods.avsc", "deployments.apps.avsc", "prometheuses.monitoring.coreos.com.avsc", "httproutes.gateway.networking.k8s.io.avsc"} {
		if !strings.Contains(exported.Stdout, want+"\n") {
			t.Errorf("%s was not exported: %s", want, exported.Stdout)
		}
	}
	if len(files) < 50 || strings.Contains(exported.Stdout, "secrets.avsc") {
		t.Errorf("%d files were exported: %s", len(files), exported.Stdout)
	}
	r.restoreAll()
}

// restoreAll restores each object that the server has.
func (r *rig) restoreAll() {
	r.t.Helper()
	lists, err := r.client.Discovery().ServerPreferredResources()
	if err != nil {
		r.t.Fatal(err)
	}
	restored := 0
	for _, list := range lists {
		group, version, grouped := strings.Cut(list.GroupVersion, "/")
		at := "apis/" + list.GroupVersion
		if !grouped {
			group, version, at = "", list.GroupVersion, "api/"+list.GroupVersion
		}
		document, err := openapi.Read(bytes.NewReader(r.get("/openapi/v3/" + at)))
		if err != nil {
			r.t.Fatal(err)
		}
		for i := range list.APIResources {
			restored += r.restore(document.Type(group, version, list.APIResources[i].Kind, openapi.Options{ManagedFields: i%2 == 0}), at, &list.APIResources[i])
		}
	}
	if restored < 100 {
		r.t.Errorf("%d objects were restored", restored)
	}
}

// restore says of how many objects of a resource nothing is lost.
func (r *rig) restore(of *typed.Type, at string, resource *metav1.APIResource) int {
	r.t.Helper()
	if !strings.Contains(strings.Join(resource.Verbs, " "), "list") {
		return 0
	}
	if of == nil {
		r.t.Errorf("there is no type of %s/%s", at, resource.Name)
		return 0
	}
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal(r.get("/"+at+"/"+resource.Name), &list); err != nil {
		r.t.Fatal(err)
	}
	for _, object := range list.Items {
		message, err := typed.NewEncoder(of).Append(nil, object)
		if err != nil {
			r.t.Fatal(err)
		}
		restored, err := typed.NewDecoder(of).Append(nil, message)
		if err != nil || !reflect.DeepEqual(treeOf(r.t, restored), treeOf(r.t, object)) {
			r.t.Errorf("%s: %v, restored is\n%s, want\n%s", resource.Name, err, restored, object)
		}
	}
	return len(list.Items)
}

func treeOf(t *testing.T, text []byte) (tree any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// TestI9SchemasFollowTheRules of the configuration: what is dropped is not there, and what is redacted is a string.
func TestI9SchemasFollowTheRules(t *testing.T) {
	r := newRig(t, "schemarules")
	r.configure("config.yaml", `  - {resource: deployments.apps, drop: [.status], redact: [.spec.replicas]}
  - {resource: configmaps, keep: [managedFields]}`, `  - {name: out, file: {path: out.ndjson}}
  - {name: narrow, file: {path: narrow.ndjson}, drop: [.spec.strategy]}`)
	fields := func(args ...string) map[string]any {
		t.Helper()
		shown := r.run(append([]string{"schema", "show", "--as", "jsonschema", "-f", r.path("config.yaml")}, args...)...)
		var schema struct {
			Properties map[string]any
			Defs       map[string]struct{ Properties map[string]any } `json:"$defs"`
		}
		if err := json.Unmarshal([]byte(shown.Stdout), &schema); err != nil || shown.Code != 0 {
			t.Fatalf("%q ends with %d, %v: %s", args, shown.Code, err, shown.Stderr)
		}
		for name, value := range schema.Properties {
			ref, _ := value.(map[string]any)["$ref"].(string)
			schema.Properties[name] = schema.Defs[strings.TrimPrefix(ref, "#/$defs/")].Properties
		}
		return schema.Properties
	}
	all := fields("deployments.apps")
	spec := all["spec"].(map[string]any)
	if _, there := all["status"]; there || !reflect.DeepEqual(spec["replicas"], map[string]any{"type": []any{"string", "null"}}) || spec["strategy"] == nil {
		t.Errorf("deployments have %v", all)
	}
	if spec := fields("deployments", "--sink", "narrow")["spec"].(map[string]any); spec["strategy"] != nil || spec["template"] == nil {
		t.Errorf("deployments of the sink have %v", spec)
	}
	if metadata := fields("configmaps")["metadata"].(map[string]any); metadata["managedFields"] == nil {
		t.Errorf("config maps have %v", metadata)
	}
	for want, args := range map[string][]string{
		"want one RESOURCE":       {"schema", "show"},
		"--as \"xml\"":            {"schema", "show", "pods", "--as", "xml"},
		"--config":                {"schema", "show", "pods", "--sink", "x"},
		"no such sink":            {"schema", "show", "configmaps", "-f", r.path("config.yaml"), "--sink", "x"},
		"no stream of \"pods\"":   {"schema", "show", "pods", "-f", r.path("config.yaml")},
		"nosuch":                  {"schema", "show", "nosuch"},
		"name one":                {"schema", "show", "*.apps"},
		"want one DIR":            {"schema", "export"},
		"make directory":          {"schema", "export", r.path("config.yaml") + "/x", "--resources", "pods"},
		"unknown command \"sho\"": {"schema", "sho"},
	} {
		failed := r.run(args...)
		if failed.Code == 0 || !strings.Contains(failed.Stderr, want) || failed.Stdout != "" {
			t.Errorf("%q ends with %d: %s, want %s", args, failed.Code, failed.Stderr, want)
		}
	}
}
