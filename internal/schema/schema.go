package schema

import (
	"encoding/json"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
)

// dialect is the JSON Schema version that the schemas are written in.
const dialect = "https://json-schema.org/draft/2020-12/schema"

// The schemas' names. Each is a file of the name with .json behind, and "urn:kubecdc:schema:" with the name behind is
// its $id: a name and no address, so that nobody asks a network for it. None refers to another.
const (
	CloudEvent = "cloudevent" // an event in structured mode
	// the attributes of an event in binary mode, by their names without the prefix, as text
	CloudEventHeaders = "cloudevent-headers"
	Debezium          = "debezium"     // a value in Debezium's envelope
	DebeziumKey       = "debezium-key" // the key of such a message on Kafka
	// an object, as the value of format object and the data of events in binary mode
	Object        = "object"
	Patch         = "patch"          // in the place of an object: what has changed since a version
	SnapshotBegin = "snapshot.begin" // what a frame or a gap says of itself
	SnapshotEnd   = "snapshot.end"
	Gap           = "gap"
	Actor         = "actor"   // who asked for a change
	Status        = "statusz" // the document at /statusz
)

// definition is one schema, or a part of one.
type definition map[string]any

// book makes the schemas.
type book struct {
	closed bool // no field is allowed but those that are named
}

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

// fields is an object of ours with these fields, of which some may be missing.
func (b book) fields(title string, properties definition, optional ...string) definition {
	d := definition{"title": title, "type": "object", "properties": properties, "required": without(properties, optional)}
	if b.closed {
		d["additionalProperties"] = false
	}
	return d
}

// object is any object of Kubernetes. It is never closed: its fields are its resource's.
func (b book) object() definition {
	some := definition{"type": "string", "minLength": 1}
	metadata := definition{
		"type": "object", "required": []string{"name"},
		"properties": definition{"name": some, "namespace": some, "uid": some, "resourceVersion": some},
	}
	return definition{
		"title": "an object as the API server wrote it, without what the configuration cuts, and with the values that it hashes",
		"type":  "object", "required": []string{"apiVersion", "kind", "metadata"},
		"properties": definition{"apiVersion": some, "kind": some, "metadata": metadata},
	}
}

// begin is what a snapshot is about to do.
func (b book) begin() definition {
	return b.fields("a list is about to be compared with the inventory", definition{
		"resourceVersion": described(version(), "of the list"),
		"reason":          reasons(func(change.Reason) bool { return true }),
		"limits":          b.limits(),
	}, "limits")
}

// limits say which objects a snapshot is of.
func (b book) limits() definition {
	return b.fields("a requested snapshot is of these objects only; missing if it is of all", definition{
		"namespace": name(),
		"name":      name(),
		"selector":  described(name(), "of labels"),
	}, "namespace", "name", "selector")
}

// end is what a snapshot did.
func (b book) end() definition {
	return b.fields("a list was compared with the inventory", definition{
		"resourceVersion": described(version(), "of the list"),
		"reason":          reasons(func(change.Reason) bool { return true }),
		"replaced":        described(count(), "objects that were new or changed"),
		"deleted":         described(count(), "objects that were gone"),
		"synced":          described(count(), "objects that were unchanged and sent again"),
		"limits":          b.limits(),
	}, "limits")
}

// gap is what a gap says: states of objects between two versions may be missing, or one object was refused by the sink.
func (b book) gap() definition {
	return b.fields("changes between two versions may be missing", definition{
		"reason":          reasons(func(r change.Reason) bool { return r.Gap() || r == change.Policy }),
		"lastDelivered":   described(definition{"type": "string"}, "the version that was delivered last; empty if nothing was delivered"),
		"resourceVersion": described(version(), "the version from which on everything is delivered again"),
		"since":           described(timestamp(), "when the stream was last known to be whole"),
		"rejected":        described(name(), "why the record is not in the sink: too_large, invalid, filter, unreadable or redaction"),
		"deadLetter":      described(name(), "the id of the dead letter that keeps the record"),
	}, "since", "rejected", "deadLetter")
}
