package encode

import (
	"context"
	words "encoding/binary"
	"errors"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/typed"
	"github.com/kubecdc/kubecdc/internal/shape/involved"
	"github.com/kubecdc/kubecdc/internal/sink"
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
	return typed.RecordName("kubecdc."+groupOf(resource)+"."+strings.ReplaceAll(resource.Kind, ".", "_")) + "." + part
}

// KeySchema is the schema of the keys of format debezium.
func KeySchema(resource *change.Resource) []byte {
	return []byte(`{"type":"record","name":"` + recordName(resource, recordKey) +
		`","fields":[{"name":"namespace","type":["null","string"],"default":null},{"name":"name","type":"string"}]}`)
}

// ValueType is the type of a resource's values in the format, of which the object's own type is a part. nil is one of
// which nothing is known: all of it is in the rest. With columns, objects are as tables of databases hold them.
func ValueType(format string, resource *change.Resource, object *typed.Type, columns bool) *typed.Type {
	var fields []typed.Field
	if object != nil && columns {
		object = object.Columns()
	}
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

// IsFlat says whether objects have columns only, in a type of ValueType.
func IsFlat(value *typed.Type) bool {
	for i := range value.Fields {
		if f := &value.Fields[i]; f.JSON == "after" && f.Type.Kind == typed.Record {
			return f.Type.IsFlat()
		}
	}
	return value.IsFlat()
}

// sourceType is that of the envelope's source.
func sourceType() *typed.Type {
	var fields []typed.Field
	for _, name := range []string{
		"version", "connector", "name", "ts_ms", "snapshot", "resource", "namespace", "object", "uid", "resourceVersion", "trimmed", "beforeomitted", "replayed",
		"db", "schema", "table",
	} {
		kind, is := map[string]typed.Kind{"ts_ms": typed.Long, "beforeomitted": typed.Bool}[name]
		if !is {
			kind = typed.String
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

// Schema is what a resource's messages are made with: ids of a registry, and what they stand for.
type Schema struct {
	Key   uint32 // of the format debezium alone
	Value uint32
	Type  *typed.Type // of the value as JSON
	// Columns says that the schemas are those of a table: a key has the namespace "" where there is none.
	Columns bool
}

// Schemas know the schemas of resources.
type Schemas interface {
	// Of is the present one of the resource, nil where it is not known. It returns at once.
	Of(resource *change.Resource) *Schema
}

// errNoSchema says that the schema of a record's resource is not known now. It is worth another attempt.
var errNoSchema = errors.New("encode: the schema is not registered yet")

// magic begins a key or a value whose schema a registry has; four bytes of an id, big endian, follow (Confluent's wire
// format).
const magic = 0

// registered puts an id of a registry before what another format makes, in Avro by the schema with the id. What has
// no schema is no value: payloads of frames that are inline are in the header kubecdc-data, so that readers of the
// topic meet nothing else.
type registered struct {
	format
	schemas  Schemas
	debezium bool
	encoders map[string]*typed.Encoder // by resource
	plain    []byte                    // memory of what the other format makes
}

func (r *registered) fill(ctx context.Context, m *memory, msg *sink.Message, rec *change.Record) error {
	schema := r.schemas.Of(&rec.Stream.Resource)
	if schema == nil {
		return errNoSchema
	}
	if err := r.fillPlain(ctx, m, msg, rec); err != nil {
		return err
	}
	if r.debezium {
		asRow := func(dst []byte, rec *change.Record) []byte { return appendTypedKey(dst, schema, rec) }
		m.key(msg, rec, asRow, asRow)
		// The id in the key is the registry's, and the partition the object's.
		msg.Partition, msg.KeySchema = m.take(debezium{}.appendKey(m.buffer, rec)), schema.Key
	}
	switch {
	case len(msg.Value) == 0:
		msg.Value = nil // also of an event without data, such as a delete of which no state is known
		return nil
	case !rec.Op.OfObject():
		kept := make([]sink.Header, 0, len(msg.Headers)+1)
		for _, h := range msg.Headers {
			if h.Name != headerMedia {
				kept = append(kept, h)
			}
		}
		msg.Headers, msg.Value = append(kept, sink.Header{Name: headerData, Value: string(msg.Value)}), nil
		return nil
	}
	value, err := r.encoder(rec, schema).Append(appendID(m.buffer, schema.Value), msg.Value)
	if err != nil {
		return &sink.RejectedError{Reason: "invalid", Err: err}
	}
	msg.Value = m.take(value)
	for i := range msg.Headers {
		if msg.Headers[i].Name == headerMedia {
			msg.Headers[i].Value = "application/avro"
		}
	}
	return nil
}

// fillPlain lets the other format make the message. What it makes is valid until the next one: it would be the larger
// part of a batch, and is no part of any message.
func (r *registered) fillPlain(ctx context.Context, m *memory, msg *sink.Message, rec *change.Record) error {
	batch := m.buffer
	m.buffer = r.plain[:0]
	err := r.format.fill(ctx, m, msg, rec)
	if r.plain = m.buffer; cap(r.plain) > maxKept {
		r.plain = nil
	}
	m.buffer = batch
	return err
}

// encoder is the one of the record's resource.
func (r *registered) encoder(rec *change.Record, schema *Schema) *typed.Encoder {
	name := rec.Stream.Resource.String()
	made := r.encoders[name]
	if made == nil || made.Type() != schema.Type {
		made = typed.NewEncoder(schema.Type)
		r.encoders[name] = made
	}
	return made
}

func appendID(dst []byte, id uint32) []byte {
	return words.BigEndian.AppendUint32(append(dst, magic), id)
}

// appendTypedKey appends the key as KeySchema has it. What speaks of the stream has a key that no object can have, as
// its name.
func appendTypedKey(dst []byte, schema *Schema, rec *change.Record) []byte {
	dst = appendID(dst, schema.Key)
	key := rec.Key
	if key.Name == "" {
		key = change.Key{Name: string(appendKey(nil, rec))}
	}
	if key.Namespace == "" && !schema.Columns {
		dst = append(dst, 0)
	} else {
		dst = appendAvro(append(dst, 2), key.Namespace)
	}
	return appendAvro(dst, key.Name)
}

// appendAvro appends a string of Avro.
func appendAvro(dst []byte, text string) []byte {
	text = strings.ToValidUTF8(text, "\ufffd")
	return append(words.AppendVarint(dst, int64(len(text))), text...)
}

// errNotRegistered says that a message has no id of a registry.
var errNotRegistered = errors.New("it begins with no id of a schema registry")

// SchemaID is the id that a key or a value begins with, and what comes after it.
func SchemaID(message []byte) (id uint32, body []byte, err error) {
	if len(message) < 5 || message[0] != magic {
		return 0, nil, errNotRegistered
	}
	return words.BigEndian.Uint32(message[1:]), message[5:], nil
}
