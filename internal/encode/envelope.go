package encode

import (
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/involved"
	"github.com/kubecdc/kubecdc/internal/typed"
)

// The last parts of the names of a resource's records in Avro, as Debezium's converter has them.
const (
	recordKey      = "Key"
	recordValue    = "Value"
	recordEnvelope = "Envelope"
)

// recordName is kubecdc.apps.Deployment and the part. It has no version: what an upgrade of the cluster brings is the
// same record with more columns.
func recordName(resource *change.Resource, part string) string {
	group := resource.Group
	if group == "" {
		group = "core"
	}
	return typed.RecordName("kubecdc."+group+"."+strings.ReplaceAll(resource.Kind, ".", "_")) + "." + part
}

// KeySchema is the schema of the keys of format debezium.
func KeySchema(resource *change.Resource) []byte {
	return []byte(`{"type":"record","name":"` + recordName(resource, recordKey) +
		`","fields":[{"name":"namespace","type":["null","string"],"default":null},{"name":"name","type":"string"}]}`)
}

// ValueType is the type of a resource's values in the format, of which the object's own type is a part. nil is one of
// which nothing is known: all of it is in the rest.
func ValueType(format string, resource *change.Resource, object *typed.Type) *typed.Type {
	var fields []typed.Field
	if object != nil {
		fields = object.Fields
	}
	value := typed.NewRecord(recordName(resource, recordValue), fields)
	if format != FormatDebezium {
		return value
	}
	value.Rest = true
	fields = []typed.Field{
		{JSON: "before", Type: value}, {JSON: "after", Type: value}, {JSON: "source", Type: sourceType()},
		{JSON: "op", Type: typed.Of(typed.String)}, {JSON: "ts_ms", Type: typed.Of(typed.Long)},
		{JSON: "changed", Type: &typed.Type{Kind: typed.List, Elem: typed.Of(typed.String)}},
		{JSON: "changedcut", Type: typed.Of(typed.Bool)}, {JSON: "actor", Type: typed.Of(typed.Text)},
		{JSON: "id", Type: typed.Of(typed.String)},
	}
	if involved.IsEvents(resource) {
		fields = append(fields, typed.Field{JSON: "involved", Type: typed.Of(typed.Text)})
	}
	return typed.NewRecord(recordName(resource, recordEnvelope), fields)
}

// sourceType is that of the envelope's source.
func sourceType() *typed.Type {
	var fields []typed.Field
	for _, name := range []string{
		"version", "connector", "name", "ts_ms", "snapshot", "resource", "namespace", "object", "uid", "resourceVersion", "trimmed", "beforeomitted", "replayed",
	} {
		kind := typed.String
		switch name {
		case "ts_ms":
			kind = typed.Long
		case "beforeomitted":
			kind = typed.Bool
		}
		fields = append(fields, typed.Field{JSON: name, Type: typed.Of(kind)})
	}
	return typed.NewRecord("kubecdc.Source", fields)
}

// The subjects that a schema can have, as Confluent names the strategies.
const (
	SubjectTopic       = "topic"        // TOPIC-key and TOPIC-value (TopicNameStrategy)
	SubjectRecord      = "record"       // the record's full name (RecordNameStrategy)
	SubjectTopicRecord = "topic-record" // TOPIC-RECORD (TopicRecordNameStrategy)
)

// Subjects are those of a resource's keys and values. Only the format debezium has keys with a schema.
func Subjects(strategy, format, topic string, resource *change.Resource) (key, value string) {
	part := recordValue
	if format == FormatDebezium {
		part = recordEnvelope
	}
	keyName, valueName := recordName(resource, recordKey), recordName(resource, part)
	switch strategy {
	case SubjectRecord:
		key, value = keyName, valueName
	case SubjectTopicRecord:
		key, value = topic+"-"+keyName, topic+"-"+valueName
	default:
		key, value = topic+"-key", topic+"-value"
	}
	if format != FormatDebezium {
		key = ""
	}
	return key, value
}
