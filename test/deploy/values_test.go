package deploy

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubecdc/kubecdc/test/deploy/chart"
	"github.com/kubecdc/kubecdc/test/deploy/generated"
)

// valueSets are values of the chart, by the names of their files.
func valueSets(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/values/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("the values are %q: %v", files, err)
	}
	sets := map[string]string{}
	for _, file := range files {
		sets[strings.TrimSuffix(filepath.Base(file), ".yaml")] = readFile(t, file)
	}
	return sets
}

var update = flag.Bool("update", false, "write testdata/rendered anew")

// TestI11TheChartRendersWhatWasReviewed: each file of values says what to look at where its rendering changes.
func TestI11TheChartRendersWhatWasReviewed(t *testing.T) {
	for name, values := range valueSets(t) {
		var rendered strings.Builder
		for _, object := range render(t, "x", values) {
			if object.GetLabels()["grafana_dashboard"] != "" {
				continue // it is a file of the chart
			}
			text, err := yaml.Marshal(object.Object)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&rendered, "---\n%s", text)
		}
		path := filepath.Join("testdata", "rendered", name+".yaml")
		if *update {
			write(t, path, rendered.String())
		}
		if readFile(t, path) != rendered.String() {
			t.Errorf("with %s the chart renders other objects than before: look at them with -update and git diff", name)
		}
	}
}

// TestTheValuesOfThePagesRender with all that the chart checks, such as that the spool fits on the volume.
func TestTheValuesOfThePagesRender(t *testing.T) {
	names, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	rendered := 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?s)<!-- file: \\S+\\.yaml -->\n```yaml\n(.*?\n)```").FindAllSubmatch(text, -1) {
			if regexp.MustCompile(`(?m)^config:$`).Match(m[1]) {
				rendered++
				workload(t, render(t, "kubecdc", string(m[1])))
			}
		}
	}
	if rendered < 3 {
		t.Errorf("the pages have %d values of the chart", rendered)
	}
}

// render is the release "kubecdc" with the values.
func render(t *testing.T, namespace, values string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := chart.Render(release(namespace, values))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func release(namespace, values string) chart.Release {
	return chart.Release{Dir: root + "/" + generated.Chart, Name: "kubecdc", Namespace: namespace, Values: values, Cluster: "test"}
}

// find is the only object of the kind.
func find(t *testing.T, objects []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	for _, object := range objects {
		if object.GetKind() == kind {
			found = append(found, object)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of kind %s", len(found), kind)
	}
	return found[0]
}

// workload is the StatefulSet or the Deployment of the exporter.
func workload(t *testing.T, objects []*unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	for _, object := range objects {
		if kind := object.GetKind(); kind == "StatefulSet" || kind == "Deployment" {
			return find(t, objects, kind)
		}
	}
	t.Fatal("nothing runs the exporter")
	return nil
}

// configOf is the exporter's configuration in its ConfigMap.
func configOf(t *testing.T, objects []*unstructured.Unstructured) string {
	t.Helper()
	for _, object := range objects {
		text, found, err := unstructured.NestedString(object.Object, "data", "config.yaml")
		if err == nil && found && object.GetKind() == "ConfigMap" {
			return text
		}
	}
	t.Fatal("no ConfigMap has config.yaml")
	return ""
}
