package consumers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubecdc/kubecdc/test/connect"
)

// tablesConfiguration is what a user has for tables of databases.
const tablesConfiguration = `
cluster: tables
resources: [configmaps, secrets, clusterroles, widgets.example.com]
discovery: {interval: 1s}
state: {dir: %[1]s/state}
listen: 127.0.0.1:0
sinks:
- {name: lake, kafka: {brokers: [%[2]q], topic: "k8s.{resource}", partitions: 3, tombstones: true, registry: {url: %[3]q, columns: json}}, format: debezium}
`

// pageSettings are the settings of the sink and of a converter that docs/kafka-connect.md has.
func pageSettings(t *testing.T) (jdbc, converter map[string]string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/kafka-connect.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```properties\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 2 {
		t.Fatalf("the page has %d blocks of properties, want those of the sink and of Apicurio's converter", len(blocks))
	}
	read := func(text string) map[string]string {
		settings := map[string]string{}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			settings[name] = value
		}
		return settings
	}
	return read(blocks[0][1]), read(blocks[1][1])
}

// connector are the settings of the page's sink, for this database, with Apicurio's converter.
func (s *typedStage) connector(t *testing.T, database string) map[string]string {
	t.Helper()
	jdbc, converter := pageSettings(t)
	maps.DeleteFunc(jdbc, func(name, _ string) bool { return strings.Contains(name, ".converter") })
	for name, value := range converter {
		if strings.HasSuffix(name, ".url") {
			value = strings.Replace(s.registry.URL(), "/apis/ccompat/v7", "/apis/registry/v2", 1)
		}
		jdbc[name], jdbc[strings.Replace(name, "value.", "key.", 1)] = value, value
	}
	jdbc["connection.url"], jdbc["connection.username"] = database, "postgres"
	return jdbc
}

// TestTablesOfADatabaseAreTheCluster: Kafka Connect with Debezium's JDBC sink, without a transform and behind the one
// that other connectors need (docs/kafka-connect.md), reads all that happens to objects, and to a definition that gets
// a field more: each table has the objects of a resource, in every field, and no task has failed.
func TestTablesOfADatabaseAreTheCluster(t *testing.T) {
	if os.Getenv("E2E_CONNECT") == "" {
		t.Skip("with E2E_CONNECT=1: fetches Kafka Connect and PostgreSQL, 200 MB")
	}
	install, err := connect.Project().Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := newTypedStage(t, tablesConfiguration)
	database, err := connect.StartPostgres(t.Context(), install)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := database.Stop(); err != nil {
			t.Error(err)
		}
	})
	s.w.populate()
	s.describe(t, `{"size":{"type":"integer"},"name":{"type":"string"}}`)
	s.x.start(t)
	s.x.settle(t)
	rows := s.connector(t, database.URL())
	unwrapped := maps.Clone(rows)
	maps.Copy(unwrapped, map[string]string{
		"name": "unwrapped", "collection.name.format": "unwrapped_${topic}",
		"transforms": "unwrap", "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
	})
	worker, err := connect.Start(t.Context(), install, s.x.dir, s.brokers(), rows, unwrapped)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(worker.Stop)
	s.w.change()
	column := []byte(`[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/colour","value":{"type":"string"}}]`)
	kinds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if _, err := s.w.client.Resource(kinds).Patch(t.Context(), widgets, types.JSONPatchType, column, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.awaitVersions(t, "k8s.widgets.example.com-value", 2)
	s.w.patch(widgets, "default", "second", `{"colour":"red","spec":{"name":"x","new":{"within":[1.50]}}}`)
	s.x.settle(t)
	s.x.process.Kill()
	s.w.forget(s.cluster)
	s.x.start(t)
	s.x.reconciles(t, "gone", len(resources()))
	s.x.settle(t)
	s.x.stop(t)
	want := s.w.list()
	eventually(t, func() error {
		lines := output(t, java(install, "Rows", database.URL())...)
		var err error
		for _, prefix := range []string{"k8s_", "unwrapped_k8s_"} {
			rows, wrong := rowsOf(t, lines, prefix)
			if wrong == nil {
				wrong = firstDifference(rows, want)
			}
			err = errors.Join(err, wrong)
		}
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, tail(worker.Log()))
		}
		return err
	})
	for _, connector := range []string{"tables", "unwrapped"} {
		response, err := http.Get(worker.URL() + "/connectors/" + connector + "/status")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if status, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(status), "RUNNING") || strings.Contains(string(status), "FAILED") {
			t.Errorf("the status of connector %s is %s, %v", connector, status, err)
		}
	}
}

// rowsOf are the objects that the tables with names of the prefix have, by the lines of Rows.
func rowsOf(t *testing.T, lines []string, prefix string) (table, error) {
	if lines[len(lines)-1] != "end" {
		return nil, fmt.Errorf("the rows stop in the middle: %q", lines)
	}
	all := table{}
	for _, line := range lines[:len(lines)-1] {
		name, text, _ := strings.Cut(line, "\t")
		resource, is := strings.CutPrefix(name, prefix)
		if !is {
			continue
		}
		row := comparable(t, []byte(text))
		namespace, object := row["namespace"], row["name"]
		maps.DeleteFunc(row, func(column string, value any) bool {
			return value == nil || column == "namespace" || column == "name"
		})
		if rest, some := row["kubecdc_rest"].(map[string]any); some {
			if rest["colour"] != nil {
				return nil, fmt.Errorf("%s has no column for the new field", name)
			}
			maps.Copy(row, rest)
			delete(row, "kubecdc_rest")
		}
		all[key(strings.ReplaceAll(resource, "_", "."), fmt.Sprint(namespace), fmt.Sprint(object))] = row
	}
	return all, nil
}

// firstDifference is one object that both have not alike. PostgreSQL has small letters for names without quotes.
func firstDifference(got, want table) error {
	for _, k := range slices.Sorted(maps.Keys(want)) {
		folded := map[string]any{}
		for name, value := range want[k] {
			folded[strings.ToLower(name)] = value
		}
		have, err1 := json.Marshal(got[k])
		wanted, err2 := json.Marshal(folded)
		if err1 != nil || err2 != nil || string(have) != string(wanted) {
			return fmt.Errorf("%s is %s, want %s", k, have, wanted)
		}
	}
	for k := range got {
		if want[k] == nil {
			return fmt.Errorf("%s is in the database, and not in the cluster", k)
		}
	}
	return nil
}
