package deploy

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"sigs.k8s.io/yaml"

	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/test/deploy/chart"
	"github.com/kubecdc/kubecdc/test/deploy/generated"
)

// TestBadValuesAreRefusedByTheirNames: what Helm says has the path of the value.
func TestBadValuesAreRefusedByTheirNames(t *testing.T) {
	for _, c := range table[struct{ Name, Values, Want string }](t, "refused.yaml") {
		t.Run(c.Name, func(t *testing.T) {
			_, err := chart.Render(release("x", c.Values))
			if err == nil || !strings.Contains(err.Error(), c.Want) {
				t.Errorf("got  %v\nwant %s", err, c.Want)
			}
		})
	}
}

// TestI10TheChartNeedsTheClustersName: the same name for two clusters mixes up their objects.
func TestI10TheChartNeedsTheClustersName(t *testing.T) {
	nameless := release("x", "")
	nameless.Cluster = ""
	if _, err := chart.Render(nameless); err == nil || !strings.Contains(err.Error(), "at '/config': missing property 'cluster'") {
		t.Errorf("without a name: %v", err)
	}
}

// TestExampleConfigurationPassesThroughUnchanged: each key that the exporter knows is one that the chart takes, and
// means the same after it.
func TestExampleConfigurationPassesThroughUnchanged(t *testing.T) {
	// in a pod
	example := strings.Replace(read(t, "deploy", "config.example.yaml"), "listen: 127.0.0.1:8080", `listen: ":8080"`, 1)
	values, err := yaml.YAMLToJSON([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	mounted := `"extraVolumeMounts":[{"mountPath":"/var/lib/kubecdc-letters"},{"mountPath":"/var/log/kubecdc"}],"persistence":{"size":"100Gi"}`
	passed := configOf(t, render(t, "x", `{`+mounted+`,"config":`+string(values)+`}`))
	if got, want := parsed(t, passed), parsed(t, example); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// parsed is the configuration as the exporter shows it.
func parsed(t *testing.T, text string) string {
	t.Helper()
	c, err := config.Parse("config.yaml", []byte(text), func(string) (string, bool) { return "x", true })
	if err != nil {
		t.Fatal(err)
	}
	shown, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(shown)
}

// TestEveryValueIsDescribed, and nothing that is not known is taken.
func TestEveryValueIsDescribed(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal([]byte(read(t, generated.Chart, "values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	checkDescribed(t, "", schema)
	for set, values := range valueSets(t) { // that of a set is no surprise to lint either
		var given map[string]any
		if err := yaml.Unmarshal([]byte(values), &given); err != nil {
			t.Fatal(err)
		}
		of, _ := given["config"].(map[string]any)
		if of == nil {
			of, given = map[string]any{}, map[string]any{"config": given["config"]}
			given["config"] = of
		}
		of["cluster"] = "test"
		for _, message := range lint.RunAll(root+"/"+generated.Chart, given, "kubecdc").Messages {
			if message.Severity >= support.WarningSev {
				t.Errorf("lint, %s: %s", set, message)
			}
		}
	}
}

func checkDescribed(t *testing.T, path string, schema map[string]any) {
	if variants, ok := schema["anyOf"].([]any); ok {
		for _, one := range variants {
			checkDescribed(t, path, one.(map[string]any))
		}
	}
	if items, ok := schema["items"].(map[string]any); ok {
		checkDescribed(t, path+"[]", items)
	}
	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		return
	}
	if schema["additionalProperties"] != false {
		t.Errorf("%s takes unknown keys", path)
	}
	for name, property := range properties {
		property := property.(map[string]any)
		if text, ok := property["description"].(string); !ok || len(text) < 5 {
			t.Errorf("%s.%s is not described", path, name)
		}
		checkDescribed(t, path+"."+name, property)
	}
}

// TestGeneratedFilesAreCurrent: make manifests makes them.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	path, schema, err := generated.Schema(root)
	if err != nil {
		t.Fatal(err)
	}
	files, err := generated.Kustomize(root)
	if err != nil {
		t.Fatal(err)
	}
	files[path] = schema
	for name, want := range files {
		if read(t, name) != string(want) {
			t.Errorf("%s is not what the chart says now: run make manifests", name)
		}
	}
	for _, dir := range []string{generated.Manifests, generated.Manifests + "/monitoring"} {
		entries, err := os.ReadDir(root + "/" + dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if name := dir + "/" + entry.Name(); !entry.IsDir() && files[name] == nil {
				t.Errorf("%s is made from nothing: remove it", name)
			}
		}
	}
}
