package consumers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubecdc/kubecdc/test/connect"
	"github.com/kubecdc/kubecdc/test/kafka"
)

// tablesConfiguration is what a user has for tables of databases.
const tablesConfiguration = `
cluster: tables
resources: [configmaps, secrets, clusterroles, widgets.example.com, pods, namespaces]
discovery: {interval: 1s}
state: {dir: %[1]s/state}
listen: 127.0.0.1:0
sinks:
- {name: lake, kafka: {brokers: [%[2]q], topic: "k8s.{resource}", partitions: 3, tombstones: true, registry: {url: %[3]q, columns: json}}, format: debezium}
- {name: documents, kafka: {brokers: [%[2]q], topic: "documents.{resource}", partitions: 3}, format: object}
`

// pageSettings are the connectors that docs/kafka-connect.md has, by name, and the settings of Apicurio's converter.
func pageSettings(t *testing.T) (connectors map[string]map[string]string, converter map[string]string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/kafka-connect.md")
	if err != nil {
		t.Fatal(err)
	}
	connectors = map[string]map[string]string{}
	for _, block := range regexp.MustCompile("(?s)```properties\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		settings := map[string]string{}
		for line := range strings.Lines(block[1]) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			settings[name] = value
		}
		if settings["name"] == "" {
			converter = settings
		} else {
			connectors[settings["name"]] = settings
		}
	}
	return connectors, converter
}

// connectors are the page's, for these addresses, with Apicurio's converter of Avro; and the one of the database once
// more, behind the transform that sinks of rows need.
func (s *typedStage) connectors(t *testing.T, database, warehouse, documents string) []map[string]string {
	t.Helper()
	all, converter := pageSettings(t)
	maps.DeleteFunc(all["tables"], func(name, _ string) bool { return strings.Contains(name, ".converter") })
	for name, value := range converter {
		if strings.HasSuffix(name, ".url") {
			value = strings.Replace(s.registry.URL(), "/apis/ccompat/v7", "/apis/registry/v2", 1)
		}
		for _, connector := range []string{"tables", "iceberg"} {
			all[connector][name], all[connector][strings.Replace(name, "value.", "key.", 1)] = value, value
		}
	}
	maps.Copy(all["tables"], map[string]string{"connection.url": database, "connection.username": "postgres"})
	all["unwrapped"] = maps.Clone(all["tables"])
	maps.Copy(all["unwrapped"], map[string]string{
		"name": "unwrapped", "collection.name.format": "unwrapped_${topic}",
		"transforms": "unwrap", "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
	})
	delete(all["iceberg"], "iceberg.catalog.uri")
	maps.Copy(all["iceberg"], map[string]string{
		"iceberg.catalog.type": "hadoop", "iceberg.catalog.warehouse": warehouse,
		"iceberg.control.commit.interval-ms": "2000", "iceberg.kafka.bootstrap.servers": s.brokers(),
	})
	all["documents"]["connection.uri"] = documents
	return slices.Collect(maps.Values(all))
}

// tabled are the resources of tablesConfiguration.
func tabled() map[string]schema.GroupVersionResource {
	all := resources()
	all["pods"], all["namespaces"] = schema.GroupVersionResource{Version: "v1", Resource: "pods"}, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	return all
}

// run makes a Pod, or what becomes of it.
func (w *writer) run(name string, status string) {
	w.t.Helper()
	pods, pod := w.client.Resource(tabled()["pods"]).Namespace("default"), &unstructured.Unstructured{}
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"labels":{"app.kubernetes.io/name":"web"}},"spec":{
		"containers":[{"name":"a","image":"web:1","env":[{"name":"QUOTED","value":"it's \"\\\\\""}],"resources":{"limits":{"cpu":"500m"}}}]}}`, name)
	if err := pod.UnmarshalJSON([]byte(text)); err != nil {
		w.t.Fatal(err)
	}
	if _, err := pods.Create(w.t.Context(), pod, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		w.t.Fatal(err)
	}
	if _, err := pods.Patch(w.t.Context(), name, types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status"); err != nil {
		w.t.Fatal(err)
	}
}

// TestTablesOfADatabaseAreTheCluster: Kafka Connect with Debezium's JDBC sink, without a transform and behind the one
// that other connectors need, and with the sinks of Iceberg and MongoDB (docs/kafka-connect.md), reads all that happens
// to objects, and to a definition that gets a field more: each table has the objects of a resource, in every field, and
// no task has failed.
func TestTablesOfADatabaseAreTheCluster(t *testing.T) {
	requireJava(t)
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
	s.w.run("stays", `{"status":{"phase":"Pending"}}`)
	s.w.run("goes", `{"status":{"phase":"Pending"}}`)
	s.describe(t, `{"size":{"type":"integer"},"name":{"type":"string"}}`)
	s.x.start(t)
	s.x.settle(t)
	s.kafka.CreateTopic(t, "control-iceberg", kafka.Topic{Partitions: 1})
	warehouse := "file:" + filepath.Join(s.x.dir, "warehouse")
	mongo, err := connect.StartMongo(t.Context(), install)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(mongo.Stop)
	worker, err := connect.Start(t.Context(), install, s.x.dir, s.brokers(), s.connectors(t, database.URL(), warehouse, mongo.URL())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(worker.Stop)
	s.w.change()
	s.w.run("stays", `{"status":{"phase":"Running","startTime":"2026-01-02T03:04:05Z","containerStatuses":[{"name":"a","image":"web:1","imageID":"","ready":true,"restartCount":3}]}}`)
	if err := s.w.client.Resource(tabled()["pods"]).Namespace("default").Delete(t.Context(), "goes", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
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
	s.x.reconciles(t, "gone", len(tabled()))
	s.x.settle(t)
	s.x.stop(t)
	want := s.w.list(tabled())
	eventually(t, func() error {
		rows, newest := output(t, java(install, "Rows", database.URL())...), output(t, java(install, "Tables", warehouse)...)
		var err error
		for prefix, lines := range map[string][]string{"k8s_": rows, "unwrapped_k8s_": rows, "iceberg_": newest} {
			rows, wrong := rowsOf(t, lines, prefix)
			if wrong == nil {
				wrong = firstDifference(rows, want)
			}
			err = errors.Join(err, wrong)
		}
		err = errors.Join(err, firstDifference(documentsOf(t, output(t, java(install, "Documents", mongo.URL())...)), want))
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, tail(worker.Log()))
		}
		return err
	})
	for _, connector := range []string{"tables", "unwrapped", "iceberg", "documents"} {
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

// documentsOf are the objects in the lines of Documents.
func documentsOf(t *testing.T, lines []string) table {
	all := table{}
	for _, line := range lines[:len(lines)-1] {
		part := strings.SplitN(line, "\t", 3)
		namespace, name, found := strings.Cut(part[1], "/")
		if !found {
			namespace, name = "", part[1]
		}
		all[key(strings.TrimPrefix(part[0], "documents."), namespace, name)] = comparable(t, []byte(part[2]))
	}
	return all
}

// firstDifference is one object that both have not alike. PostgreSQL has small letters for names without quotes.
func firstDifference(got, want table) error {
	folded := func(row map[string]any) map[string]any {
		all := map[string]any{}
		for name, value := range row {
			all[strings.ToLower(name)] = value
		}
		return all
	}
	for _, k := range slices.Sorted(maps.Keys(want)) {
		have, err1 := json.Marshal(folded(got[k]))
		wanted, err2 := json.Marshal(folded(want[k]))
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
