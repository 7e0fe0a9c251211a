package schema

import "slices"

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

// fields is an object of ours with these fields, of which some may be missing.
func (b book) fields(title string, properties definition, optional ...string) definition {
	d := definition{"title": title, "type": "object", "properties": properties, "required": without(properties, optional)}
	if b.closed {
		d["additionalProperties"] = false
	}
	return d
}

// without are the names of the properties that are not optional, sorted.
func without(properties definition, optional []string) []string {
	names := []string{}
	for name := range properties {
		if !slices.Contains(optional, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
