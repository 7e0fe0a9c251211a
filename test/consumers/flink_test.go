package consumers

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/test/maven"
)

// column is one of the job's result.
type column struct {
	name string
	json bool // its text is JSON
}

func columns() []column {
	return []column{
		{name: "namespace"}, {name: "name"}, {name: "uid"}, {name: "resourceVersion"}, {name: "apiVersion"}, {name: "kind"},
		{"labels", true}, {"data", true}, {"spec", true}, {"rules", true},
	}
}

// flinkTable folds the changelogs that a job of Flink SQL makes of the topics, and counts its rows by their kind.
func flinkTable(t *testing.T, install maven.Dir, brokers, prefix string) (table, map[string]int) {
	t.Helper()
	args := []string{"Flink", brokers}
	for resource := range resources() {
		args = append(args, prefix+resource)
	}
	lines := output(t, java(install, args...)...)
	if lines[len(lines)-1] != "end" {
		t.Fatalf("the job stopped in the middle, after %d rows", len(lines))
	}
	all, kinds := table{}, map[string]int{}
	for _, line := range lines[:len(lines)-1] {
		part := strings.Split(line, "\t")
		if len(part) != 2+len(columns()) {
			t.Fatalf("the job wrote %q", line)
		}
		kinds[part[1]]++
		resource := strings.TrimPrefix(part[0], prefix)
		row := flinkRow(t, part[2:])
		k := key(resource, fmt.Sprint(row["namespace"]), fmt.Sprint(row["name"]))
		switch part[1] {
		case "+I", "+U":
			all[k] = row
		default:
			delete(all, k)
		}
	}
	return all, kinds
}

func flinkRow(t *testing.T, values []string) map[string]any {
	t.Helper()
	row := map[string]any{}
	for i, c := range columns() {
		row[c.name] = ""
		if values[i] == "-" {
			continue
		}
		text, err := base64.StdEncoding.DecodeString(values[i])
		if err != nil {
			t.Fatal(err)
		}
		row[c.name] = string(text)
		if c.json {
			row[c.name] = comparable(t, []byte(`{"kind":"`+row["kind"].(string)+`","data":`+string(text)+`}`))["data"]
		}
	}
	return row
}

// columnsOf is the cluster's list as rows of the job's.
func columnsOf(list table) table {
	rows := table{}
	for k, object := range list {
		row := map[string]any{}
		metadata := object["metadata"].(map[string]any)
		for _, c := range columns() {
			value := object[c.name]
			if value == nil {
				value = metadata[c.name]
			}
			if value == nil {
				value = ""
			}
			row[c.name] = value
		}
		rows[k] = row
	}
	return rows
}
