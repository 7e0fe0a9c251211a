package encode

import (
	"context"
	"strconv"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// binary is CloudEvents in binary mode: each attribute is a header, and data is the value.
//
// Kafka: "ce_" before the name, datacontenttype as content-type, values in UTF-8 (CloudEvents 1.0.2, Kafka protocol
// binding 3.2). NATS: "ce-" before each name, also of datacontenttype, and values percent-encoded as for HTTP
// (CloudEvents, NATS protocol binding 3.1, HTTP protocol binding 3.1.3.2).
type binary struct {
	prefix      string
	names       map[string]string // the header of an attribute, made when it is needed first
	source      string
	cluster     string
	contentType string
	encoded     bool // values are percent-encoded
}

// headerMedia has the media type of data on Kafka.
const headerMedia = "content-type"

func newBinary(cluster string, transport Transport) *binary {
	b := &binary{prefix: "ce_", names: map[string]string{}, cluster: cluster, contentType: headerMedia}
	if transport == NATS {
		b.prefix, b.contentType, b.encoded = "ce-", "ce-datacontenttype", true
	}
	b.source = b.text("/clusters/" + cluster)
	return b
}

func (b *binary) fill(_ context.Context, m *memory, msg *sink.Message, rec *change.Record) error {
	start := len(m.headers)
	add := func(attribute, value string) {
		name, known := b.names[attribute]
		if !known {
			name = b.prefix + attribute
			b.names[attribute] = name
		}
		m.headers = append(m.headers, sink.Header{Name: name, Value: value})
	}
	made := func(name string, bytes []byte) { // its value was appended to the encoder's texts
		before := len(m.texts.bytes)
		if value := bytes[before:]; b.encoded && needsPercent(value) {
			bytes = appendPercent(bytes[:before], string(value))
		}
		add(name, "")
		m.texts.put(len(m.headers)-1-start, bytes)
	}
	add("specversion", "1.0")
	made("id", append(m.texts.bytes, m.texts.ID()...))
	add("source", b.source)
	made("type", append(append(m.texts.bytes, typePrefix...), rec.Op.String()...))
	made("subject", appendPath(m.texts.bytes, rec))
	made("time", rec.Received.UTC().AppendFormat(m.texts.bytes, timeFormat))
	text := func(name, value string) { add(name, b.text(value)) }
	extensions(rec, b.cluster, text, func(name string) { add(name, "true") })
	data, mediaType := content(rec)
	if data != nil {
		m.headers = append(m.headers, sink.Header{Name: b.contentType, Value: mediaType})
	}
	msg.Headers = m.headers[start:len(m.headers):len(m.headers)]
	msg.Value = present(data)
	return nil
}

// text is the value as the transport's headers take it.
func (b *binary) text(value string) string {
	if !b.encoded || !needsPercent(value) {
		return value
	}
	return string(appendPercent(nil, value))
}

// appendPercent appends the value in percent-encoding.
func appendPercent(dst []byte, value string) []byte {
	const hex = "0123456789ABCDEF"
	for i := range len(value) {
		if c := value[i]; percentEncoded(c) {
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

func needsPercent[T string | []byte](value T) bool {
	for i := range len(value) {
		if percentEncoded(value[i]) {
			return true
		}
	}
	return false
}

// percentEncoded says which bytes of a value in UTF-8 are: all that are not printable ASCII, space, quote and percent.
func percentEncoded(c byte) bool { return c <= ' ' || c >= 0x7f || c == '"' || c == '%' }

// headerText is a value that every transport takes: percent-encoded where it is not printable ASCII.
func headerText(value string) string { return (&binary{encoded: true}).text(value) }

// debezium is the change event envelope of Debezium, as its JSON converter writes it without schemas:
//
//	{"before":..,"after":..,"source":{..},"op":"c|u|d|r","ts_ms":..,"id":..}
//
// id is ours, and so are changed, actor and involved: readers pass over fields that they do not know. A file's tail is
// read back by the id.
//
// Readers of changelogs want a before with every u and d. Of an update it is the object as it was delivered last, of a
// delete the final state that the watch sent, or else the object as it was delivered last. Where that is not kept,
// before is a stand-in with the object's identity alone.
//
// source.snapshot is "true" of what a snapshot tells, "last" of the last such record of one, and "false" of what a
// watch tells. Of the other values that Debezium knows (io.debezium.connector.SnapshotRecord) first,
// first_in_data_collection and last_in_data_collection are of snapshots of several tables, and incremental of those
// that run beside the changes.
//
// What speaks of the stream and not of an object has no place in the envelope, and readers stop at an operation that
// they do not know. Inline, it goes out without a value, which they skip, and says what it has to say in the header
// kubecdc-data. A file has no headers; there it is a line with Debezium's operation "m", message.
type debezium struct {
	cluster, version string
	transport        Transport
}

// headerData carries the payload of a message that has no value.
const headerData = "kubecdc-data"

func (d debezium) fill(_ context.Context, m *memory, msg *sink.Message, rec *change.Record) error {
	if d.transport == Kafka {
		m.key(msg, rec, d.appendKey, d.appendKey)
	}
	if rec.Op.OfObject() || d.transport == File {
		msg.Value = m.take(d.append(m.buffer, m.texts.ID(), rec))
		return nil
	}
	start := len(m.headers)
	m.headers = append(m.headers, sink.Header{Name: headerData, Value: string(payload(rec))})
	msg.Headers = m.headers[start:len(m.headers):len(m.headers)]
	if d.transport == NATS {
		msg.Value = []byte{}
	}
	return nil
}

func (d debezium) append(dst, id []byte, rec *change.Record) []byte {
	dst = d.appendBefore(append(dst, `{"before":`...), rec)
	dst = append(dst, `,"after":`...)
	if rec.Op == change.Deleted || rec.Object == nil {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, rec.Object...)
	}
	if !rec.Op.OfObject() {
		dst = append(append(dst, `,"message":`...), payload(rec)...)
	}
	millis := rec.Received.UnixMilli()
	dst = d.appendSource(append(dst, `,"source":`...), rec, millis)
	dst = append(append(append(dst, `,"op":"`...), debeziumOp(rec.Op)...), `","ts_ms":`...)
	dst = strconv.AppendInt(dst, millis, 10)
	if rec.Changed != nil {
		dst = append(append(dst, `,"changed":`...), rec.Changed...)
	}
	if rec.ChangedCut {
		dst = appendTrue(dst, "changedcut")
	}
	if rec.Actor != nil {
		dst = append(append(dst, `,"actor":`...), rec.Actor...)
	}
	if rec.Involved != nil {
		dst = append(append(dst, `,"involved":`...), rec.Involved...)
	}
	return append(append(append(dst, `,"id":"`...), id...), `"}`...)
}

func (d debezium) appendBefore(dst []byte, rec *change.Record) []byte {
	switch {
	case rec.Op == change.Deleted && rec.Object != nil:
		return append(dst, rec.Object...)
	case (rec.Op == change.Updated || rec.Op == change.Deleted) && rec.Before != nil:
		return append(dst, rec.Before...)
	case rec.Op == change.Deleted:
		return appendIdentity(dst, rec, rec.ResourceVersion)
	case rec.Op == change.Updated:
		return appendIdentity(dst, rec, "")
	}
	return append(dst, "null"...)
}

// appendIdentity stands in for an object of which no more is known, with its version where that is known.
func appendIdentity(dst []byte, rec *change.Record, version string) []byte {
	res := &rec.Stream.Resource
	dst = appendString(append(dst, `{"apiVersion":`...), res.APIVersion())
	dst = appendMember(dst, "kind", res.Kind)
	dst = appendString(append(dst, `,"metadata":{"name":`...), rec.Key.Name)
	dst = appendOptional(dst, "namespace", rec.Key.Namespace)
	dst = appendOptional(dst, "uid", rec.UID)
	dst = appendOptional(dst, "resourceVersion", version)
	return append(dst, "}}"...)
}

// appendSource says where the change comes from. name is the cluster, as Debezium's is the logical server. What routes
// by the table of a database finds the cluster, the group and the resource.
func (d debezium) appendSource(dst []byte, rec *change.Record, millis int64) []byte {
	dst = appendString(append(dst, `{"version":`...), d.version)
	dst = appendString(append(dst, `,"connector":"kubecdc","name":`...), d.cluster)
	dst = strconv.AppendInt(append(dst, `,"ts_ms":`...), millis, 10)
	switch {
	case rec.Snapshot == nil:
		dst = append(dst, `,"snapshot":"false","resource":`...)
	case rec.Last:
		dst = append(dst, `,"snapshot":"last","resource":`...)
	default:
		dst = append(dst, `,"snapshot":"true","resource":`...)
	}
	start := len(dst)
	dst = endString(rec.Stream.Resource.AppendString(append(dst, '"')), start) // in kubectl's form
	dst = appendOptional(dst, "namespace", rec.Key.Namespace)
	dst = appendOptional(dst, "object", rec.Key.Name)
	dst = appendOptional(dst, "uid", rec.UID)
	dst = appendMember(dst, "resourceVersion", rec.ResourceVersion)
	text := func(name, value string) { dst = appendMember(dst, name, value) }
	marks(rec, text, func(name string) { dst = appendTrue(dst, name) })
	text("db", d.cluster)
	text("schema", groupOf(&rec.Stream.Resource))
	text("table", rec.Stream.Resource.Name)
	return append(dst, '}')
}

// appendKey is the object's key as a row's; a record that speaks of its stream has its own.
func (d debezium) appendKey(dst []byte, rec *change.Record) []byte {
	if rec.Key.Name == "" {
		return appendKey(dst, rec)
	}
	dst = append(dst, `{"namespace":`...)
	if rec.Key.Namespace == "" {
		dst = append(dst, "null"...)
	} else {
		dst = appendString(dst, rec.Key.Namespace)
	}
	return append(appendMember(dst, "name", rec.Key.Name), '}')
}

// debeziumOp is c for create, u for update, d for delete, r for what a snapshot read, and m for what is no object.
func debeziumOp(op change.Op) string {
	switch {
	case !op.OfObject():
		return "m"
	case op == change.Added:
		return "c"
	case op == change.Updated:
		return "u"
	case op == change.Deleted:
		return "d"
	}
	return "r"
}

// object is the bare object. Where it is gone there is no value: a tombstone on Kafka, and elsewhere an empty message
// whose header kubecdc-op tells of the delete.
type object struct{ transport Transport }

func (o object) fill(_ context.Context, _ *memory, msg *sink.Message, rec *change.Record) error {
	switch {
	case rec.Op != change.Deleted:
		msg.Value = present(payload(rec))
	case o.transport != Kafka:
		msg.Value = []byte{}
	}
	return nil
}

// memory is what the messages of a batch share.
type memory struct {
	buffer  []byte
	headers []sink.Header
	texts   texts // of the message that is being made
}

// maxKept is the largest buffer, in bytes, that an encoder keeps for the next batch.
const maxKept = 8 << 20

// take returns what was appended to the buffer.
func (m *memory) take(buffer []byte) []byte {
	start := len(m.buffer)
	m.buffer = buffer
	return buffer[start:len(buffer):len(buffer)]
}

// key sets the message's key to what is appended for the record. The gap of an object is no state of it, and must not
// take the place of one in a compacted topic: it has a key of its own, in the object's partition.
func (m *memory) key(msg *sink.Message, rec *change.Record, ofObject, ofGap func([]byte, *change.Record) []byte) {
	msg.Key = m.take(ofObject(m.buffer, rec))
	if rec.Op == change.Gap && rec.Key.Name != "" {
		name := rec.Stream.Resource.AppendString([]byte("/gap/")) // which no object can have
		name = appendJoined(append(name, '/'), rec.Key.Namespace, rec.Key.Name)
		gap := &change.Record{Stream: rec.Stream, Op: rec.Op, Key: change.Key{Name: string(name)}}
		msg.Partition, msg.Key = msg.Key, m.take(ofGap(m.buffer, gap))
	}
}

// Transport is what carries the messages. It decides how attributes stand beside a value.
type Transport uint8

const (
	File  Transport = iota // values alone, a line each
	NATS                   // headers; no keys
	Kafka                  // headers, keys and messages without a value
)

// appendKey appends the key of the record's message: "namespace/name", or "name" where the object is cluster-scoped.
// All messages of an object have one key, so they share a partition, in which their order is kept.
//
// A record that speaks of its stream has a key that no object can have, "/snapshot.begin" or "shop//gap": a compacted
// topic takes no message without one, and keeps the last of each. So has the gap of an object,
// "/gap/configmaps/shop/web".
func appendKey(dst []byte, rec *change.Record) []byte {
	if rec.Op == change.Actor { // each has its own key: a compacted topic keeps them all
		return appendJoined(append(append(dst, rec.UID...), '/'), rec.Key.Namespace, rec.Key.Name)
	}
	if rec.Key.Name != "" {
		return appendJoined(dst, rec.Key.Namespace, rec.Key.Name)
	}
	dst = append(dst, rec.Stream.Namespace...)
	if rec.Stream.Namespace != "" {
		dst = append(dst, '/')
	}
	return append(append(dst, '/'), rec.Op.String()...)
}

func appendJoined(dst []byte, namespace, name string) []byte {
	if namespace != "" {
		dst = append(append(dst, namespace...), '/')
	}
	return append(dst, name...)
}

// The formats, as the configuration names them.
const (
	FormatCloudEvents = "cloudevents" // CloudEvents 1.0, structured mode, JSON
	// CloudEvents 1.0, binary mode: attributes are headers, the object is the value
	FormatCloudEventsBinary = "cloudevents-binary"
	FormatDebezium          = "debezium" // Debezium's change event envelope, JSON without schema
	FormatObject            = "object"   // the bare object
)

// format makes a record's message.
type format interface {
	// fill sets the value, and what of the headers and the key is the format's own. The id is in m.texts. A
	// *sink.RejectedError is about the record, which then never arrives; after any other error the record is tried
	// again. It returns soon after ctx ends.
	fill(ctx context.Context, m *memory, msg *sink.Message, rec *change.Record) error
}
