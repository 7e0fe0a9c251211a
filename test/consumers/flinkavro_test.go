package consumers

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// flinkReads, with E2E_FLINK_AVRO=1, lets a job of Flink SQL read ConfigMaps as typed columns. A topic without an
// envelope is a stream of rows: in it nobody tells of deletes, and the last row of an object counts.
func (s *typedStage) flinkReads(t *testing.T, format, topic string, want table) {
	p, err := flink().Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lines := output(t, java(p, "FlinkAvro", s.kafka.Brokers()[0], s.registry.URL(), format, topic)...)
	if lines[len(lines)-1] != "end" {
		t.Fatalf("the job stopped in the middle, after %d rows", len(lines))
	}
	left := map[string]string{}
	for _, line := range lines[:len(lines)-1] {
		kind, row, _ := strings.Cut(line, "\t")
		name, columns, _ := strings.Cut(row, "\t")
		if strings.HasPrefix(kind, "+") {
			left[name] = columns
		} else {
			delete(left, name)
		}
	}
	all := map[string]string{}
	for k, object := range want {
		if strings.HasPrefix(k, configMaps+" ") {
			name, columns := flinkColumns(object)
			all[name] = columns
			if left[name] != columns {
				t.Errorf("%s is %q, want %q", k, left[name], columns)
			}
		}
	}
	if len(all) < 3 || strings.HasPrefix(format, "debezium") && !maps.Equal(left, all) {
		t.Errorf("the rows are %q, want %q", left, all)
	}
	t.Logf("%s: %d rows, %d objects", format, len(lines)-1, len(all))
}

// flinkColumns are an object as the job prints it.
func flinkColumns(object map[string]any) (name, columns string) {
	coded := func(value any) string { return base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(value))) }
	metadata := object["metadata"].(map[string]any)
	entries := "-"
	if data, some := object["data"].(map[string]any); some {
		var all []string
		for _, key := range slices.Sorted(maps.Keys(data)) {
			all = append(all, coded(key)+":"+coded(data[key]))
		}
		entries = strings.Join(all, ",")
	}
	columns = strings.Join([]string{coded(metadata["uid"]), coded(metadata["resourceVersion"]), coded(object["kind"]), entries}, "\t")
	return coded(metadata["namespace"]) + "/" + coded(metadata["name"]), columns
}
