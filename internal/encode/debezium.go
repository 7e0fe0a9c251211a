package encode

import (
	"context"
	"strconv"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

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
// they do not know. It goes out without a value, which they skip, and says what it has to say in the header
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
		dst = append(dst, `,"changedcut":true`...)
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
	case needsBefore(rec.Op) && rec.Before != nil:
		return append(dst, rec.Before...)
	case rec.Op == change.Deleted:
		return appendIdentity(dst, rec, rec.ResourceVersion)
	case rec.Op == change.Updated:
		return appendIdentity(dst, rec, "")
	}
	return append(dst, "null"...)
}

func needsBefore(op change.Op) bool { return op == change.Updated || op == change.Deleted }

// snapshotOf is the value of source.snapshot.
func snapshotOf(rec *change.Record) string {
	switch {
	case rec.Snapshot == nil:
		return "false"
	case rec.Last:
		return "last"
	}
	return "true"
}

// appendIdentity stands in for an object of which no more is known, with its version where that is known.
func appendIdentity(dst []byte, rec *change.Record, version string) []byte {
	res := &rec.Stream.Resource
	dst = appendString(append(dst, `{"apiVersion":`...), res.APIVersion())
	dst = appendString(append(dst, `,"kind":`...), res.Kind)
	dst = appendString(append(dst, `,"metadata":{"name":`...), rec.Key.Name)
	dst = appendOptional(dst, `,"namespace":`, rec.Key.Namespace)
	dst = appendOptional(dst, `,"uid":`, rec.UID)
	dst = appendOptional(dst, `,"resourceVersion":`, version)
	return append(dst, "}}"...)
}

// appendSource says where the change comes from. name is the cluster, as Debezium's is the logical server.
func (d debezium) appendSource(dst []byte, rec *change.Record, millis int64) []byte {
	dst = appendString(append(dst, `{"version":`...), d.version)
	dst = appendString(append(dst, `,"connector":"kubecdc","name":`...), d.cluster)
	dst = strconv.AppendInt(append(dst, `,"ts_ms":`...), millis, 10)
	dst = append(append(append(dst, `,"snapshot":"`...), snapshotOf(rec)...), '"')
	dst = appendResourceString(append(dst, `,"resource":`...), rec)
	dst = appendOptional(dst, `,"namespace":`, rec.Key.Namespace)
	dst = appendOptional(dst, `,"object":`, rec.Key.Name)
	dst = appendOptional(dst, `,"uid":`, rec.UID)
	dst = appendString(append(dst, `,"resourceVersion":`...), rec.ResourceVersion)
	return append(appendMarks(dst, rec), '}')
}

// appendResourceString appends the resource in kubectl's form as a JSON string.
func appendResourceString(dst []byte, rec *change.Record) []byte {
	start := len(dst)
	return endString(rec.Stream.Resource.AppendString(append(dst, '"')), start)
}

// appendKey is the object's key as a row's; a record that speaks of its stream has its own.
func (d debezium) appendKey(dst []byte, rec *change.Record) []byte {
	if rec.Key.Name == "" {
		return appendKey(dst, rec)
	}
	return appendRowKey(dst, rec.Key)
}

func appendRowKey(dst []byte, key change.Key) []byte {
	dst = append(dst, `{"namespace":`...)
	if key.Namespace == "" {
		dst = append(dst, "null"...)
	} else {
		dst = appendString(dst, key.Namespace)
	}
	return append(appendString(append(dst, `,"name":`...), key.Name), '}')
}

// debeziumOp is c for create, u for update, d for delete, r for what a snapshot read, and m for what is no object.
func debeziumOp(op change.Op) string {
	if !op.OfObject() {
		return "m"
	}
	switch op {
	case change.Added:
		return "c"
	case change.Updated:
		return "u"
	case change.Deleted:
		return "d"
	}
	return "r"
}
