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

// debezium is a value in Debezium's envelope. Before is never null where readers of changelogs want one: with updates
// and deletes. Operation m is a line of a file that speaks of no object; on brokers such a message has no value.
func (b book) debezium() definition {
	null := definition{"type": "null"}
	d := b.fields("a record in Debezium's envelope, as its JSON converter writes it without schemas", definition{
		"before":  definition{"anyOf": []any{null, anObject()}},
		"after":   definition{"anyOf": []any{null, anObject()}},
		"message": described(definition{"type": "object"}, "the data of a frame or gap, in a file"),
		"source":  b.source(),
		"op":      described(definition{"enum": []string{"c", "u", "d", "r", "m"}}, "created, updated, deleted, read by a snapshot, message"),
		"ts_ms":   described(millis(), "when the exporter received the record"),
		"changed": described(
			definition{"type": "array", "items": definition{"type": "string"}}, "JSON Pointers of what differs from before; missing if that is not asked for"),
		"changedcut": changedCut(true),
		"actor":      b.actor(),
		"involved":   b.involved(),
		"id":         id(),
	}, "message", "changed", "changedcut", "actor", "involved")
	d["allOf"] = []any{
		ifOp(b.row(null, anObject()), "c", "r"), ifOp(b.row(anObject(), anObject()), "u"), ifOp(b.row(anObject(), null), "d"),
		ifOp(definition{
			"required": []string{"message"},
			"properties": definition{
				"before": null, "after": null, "message": definition{"anyOf": []any{b.begin(), b.end(), b.gap()}},
			},
		}, "m"),
	}
	d["$defs"] = definition{Object: b.object()}
	return d
}

// row is the two sides of a change, which is of an object with a name.
func (b book) row(before, after definition) definition {
	return definition{
		"properties": definition{"before": before, "after": after, "source": definition{"required": []string{"object"}}},
		"not":        definition{"required": []string{"message"}},
	}
}

func ifOp(then definition, ops ...string) definition {
	return definition{"if": definition{"properties": definition{"op": definition{"enum": ops}}, "required": []string{"op"}}, "then": then}
}

// source says where the change comes from.
func (b book) source() definition {
	return b.fields("where the change comes from", definition{
		"version":         described(definition{"type": "string"}, "of the exporter"),
		"connector":       definition{"const": "kubecdc"},
		"name":            described(name(), "the cluster"),
		"ts_ms":           millis(),
		"snapshot":        described(definition{"enum": []string{"true", "false", "last"}}, "whether a snapshot found it"),
		"resource":        described(name(), "in kubectl's form, such as deployments.apps"),
		"namespace":       described(name(), "missing for cluster-scoped objects and for streams of all namespaces"),
		"object":          described(name(), "the object's name; missing in stream-level records; in a gap of reason policy %sha256- and a hash if the name is too long"),
		"uid":             name(),
		"resourceVersion": described(version(), "of the object, or of the stream in a stream-level record"),
		"trimmed":         trimmed(),
		"beforeomitted":   beforeOmitted(true),
		"replayed":        replayed(),
	}, "namespace", "object", "uid", "trimmed", "beforeomitted", "replayed")
}

func millis() definition { return definition{"type": "integer"} }

// debeziumKey is an object's key as a row's.
func (b book) debeziumKey() definition {
	return b.fields("the key of an object's messages", definition{
		"namespace": described(definition{"type": []string{"string", "null"}, "minLength": 1}, "null for cluster-scoped objects"),
		"name":      name(),
	})
}
