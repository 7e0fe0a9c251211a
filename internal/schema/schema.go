package schema

import (
	"encoding/json"
	"fmt"
)

// dialect is the JSON Schema version that the schemas are written in.
const dialect = "https://json-schema.org/draft/2020-12/schema"

// Files returns the schemas by their names, as indented JSON. They allow further fields in the records: readers that
// check what they read go on when a later version of the exporter adds one.
func Files() (map[string][]byte, error) { return book{}.files() }

// ClosedFiles are the same schemas without further fields: what this very version writes. Objects stay open.
func ClosedFiles() (map[string][]byte, error) { return book{closed: true}.files() }

func (b book) files() (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, d := range b.all() {
		d["$schema"], d["$id"] = dialect, "urn:kubecdc:schema:"+name
		text, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("write schema %s: %w", name, err)
		}
		files[name] = append(text, '\n')
	}
	return files, nil
}

func (b book) all() map[string]definition {
	return map[string]definition{
		CloudEvent: b.cloudEvent(), CloudEventHeaders: b.headers(), Debezium: b.debezium(), DebeziumKey: b.debeziumKey(),
		Object: b.object(), Patch: b.patch(), SnapshotBegin: b.begin(), SnapshotEnd: b.end(), Gap: b.gap(), Actor: b.told(),
		Status: b.status(),
	}
}
