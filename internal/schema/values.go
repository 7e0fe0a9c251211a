package schema

import (
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/involved"
)

// typePrefix comes before the operation in the CloudEvents attribute "type".
const typePrefix = "dev.kubecdc."

// operations are those that go to sinks.
func operations(wanted func(change.Op) bool) []string {
	var names []string
	for op := change.Added; op <= change.Actor; op++ {
		if op != change.Bookmark && wanted(op) {
			names = append(names, op.String())
		}
	}
	return names
}

func anyOp(change.Op) bool { return true }

// isOfStream says whether a watch or a reconcile tells of it, and not the audit.
func isOfStream(op change.Op) bool { return op != change.Actor }

// types are the operations as CloudEvents' types.
func types(wanted func(change.Op) bool) definition {
	names := operations(wanted)
	for i, name := range names {
		names[i] = typePrefix + name
	}
	return definition{"enum": names}
}

// reasons are those of reconciles; policy is a gap's alone.
func reasons(wanted func(change.Reason) bool) definition {
	return definition{"enum": slices.DeleteFunc(change.Reasons(), func(r change.Reason) bool { return !wanted(r) })}
}

// version is a resourceVersion. Consumers compare it within one resource only, and for equality (KEP-5504: it is a
// number for resources that the API server itself stores; an aggregated one may write anything).
func version() definition { return definition{"type": "string", "minLength": 1} }

// timestamp is in UTC with microseconds.
func timestamp() definition {
	return definition{"type": "string", "format": "date-time", "pattern": `^\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`}
}

// name is that of a namespace or an object.
func name() definition { return definition{"type": "string", "minLength": 1} }

// id needs no escaping anywhere, and has its parts between slashes.
func id() definition {
	return described(definition{"type": "string", "pattern": `^[^/ "\\]+(/[^/ "\\]*){6,7}$`},
		"cluster/resource/namespace/name/uid/resourceVersion/op, the same for each copy of one change")
}

func described(d definition, description string) definition {
	with := definition{"description": description}
	for key, value := range d {
		with[key] = value
	}
	return with
}

// actor are the field managers that changed an object last.
func (b book) actor() definition {
	entry := b.fields("an entry of managedFields", definition{
		"manager": name(), "operation": described(name(), "Apply or Update"), "subresource": name(), "time": moment(),
	}, "operation", "subresource")
	return described(listOf(entry), "the newest entries of managedFields; missing if that is not asked for")
}

// involved is what is known of the object that an Event is about.
func (b book) involved() definition {
	text, flag := definition{"type": "string"}, definition{"type": []string{"boolean", "string"}} // a hash is a string
	owner := b.fields("an owner, as Kubernetes has it (metav1.OwnerReference)", definition{
		"apiVersion": text, "kind": text, "name": text, "uid": text, "controller": flag, "blockOwnerDeletion": flag,
	}, "apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
	return b.fields("in an Event, if it is asked for: what is known of the object that it is about", definition{
		"resourceVersion": described(version(), "the version of that object that was told last"),
		"labels":          mapOf(text), "ownerReferences": definition{"type": "array", "items": owner},
		"unknown": described(definition{"enum": involved.Unknowns()}, "why nothing is known of it"),
	}, "resourceVersion", "labels", "ownerReferences", "unknown")
}

// trimmed, beforeOmitted and replayed are what was done to the record for one sink.
func trimmed() definition {
	return described(name(), "the paths that were cut to make the object fit, joined by commas; missing if the object is whole")
}

func beforeOmitted(value any) definition {
	return described(definition{"const": value}, "the object before, or the last state of one that is gone, was left out to make the record fit; missing if it was not")
}

func changedCut(value any) definition {
	return described(definition{"const": value}, "there are more pointers than changed has; missing if there are not")
}

func replayed() definition {
	return described(definition{"enum": []change.Replayed{change.Current, change.History}},
		"in a dead letter that is sent again: whether the object still looks like that")
}

func count() definition { return definition{"type": "integer", "minimum": 0} }

// moment has the zone and the digits that it was noted with.
func moment() definition { return definition{"type": "string", "format": "date-time"} }

func listOf(d definition) definition { return definition{"type": "array", "minItems": 1, "items": d} }

func mapOf(d definition) definition { return definition{"type": "object", "additionalProperties": d} }

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
