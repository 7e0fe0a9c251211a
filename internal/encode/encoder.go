package encode

import (
	"context"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Options says how a sink's messages look.
type Options struct {
	Cluster     string // the name, for people
	ClusterUID  string // the uid of namespace kube-system, for ids
	Version     string // of the exporter
	Format      string // one of the formats; "" is FormatCloudEvents
	Transport   Transport
	Destination Destination // nil where the sink has one place only
	// Tombstones puts a message without a value after each delete, so that a compacted log forgets the object. It
	// has the delete's id and key.
	Tombstones bool
	Key        *Text    // of the messages of objects, on Kafka; nil is the format's
	Headers    []Header // beside those of the format, where the transport has any
	Schemas    Schemas  // of a registry; nil writes JSON
}

// Destination is where a record's message goes: a *Subject or a *Topic.
type Destination interface {
	// Append appends the place of the record's message to dst.
	Append(dst []byte, rec *change.Record) []byte
}

// Encoder turns records into messages for one sink. It is used by one goroutine: the messages of a batch share memory
// that Reset takes back.
type Encoder struct {
	options Options
	format  format
	buffer  []byte
	headers []sink.Header
	texts   texts // of the message that is being made
}

// NewEncoder returns an encoder.
func NewEncoder(options Options) *Encoder {
	return &Encoder{options: options, format: newFormat(&options)}
}

// maxKept is the largest buffer, in bytes, that an encoder keeps for the next batch.
const maxKept = 8 << 20

// Reset forgets the messages of the last batch; their bytes are overwritten.
func (e *Encoder) Reset() {
	if cap(e.buffer) > maxKept {
		e.buffer = nil
	}
	e.buffer = e.buffer[:0]
	clear(e.headers)
	e.headers = e.headers[:0]
}

// Encode appends the record's message to dst, and the delete's tombstone where there is to be one. The messages are
// valid until Reset. Where the format fails, dst is returned as it was, with the format's error.
func (e *Encoder) Encode(ctx context.Context, dst []sink.Message, rec *change.Record) ([]sink.Message, error) {
	if err := takesActors(e.format, rec); err != nil {
		return dst, err
	}
	before := len(dst)
	dst = append(dst, sink.Message{Op: rec.Op.String(), ResourceVersion: rec.ResourceVersion, Time: rec.Received})
	msg := &dst[len(dst)-1]
	if rec.Snapshot != nil && !rec.Op.OfObject() {
		msg.Reason, msg.Limited = string(rec.Snapshot.Reason), rec.Snapshot.Limits != change.Limits{}
	}
	e.texts.begin(rec.AppendID(e.texts.bytes[:0], e.options.ClusterUID))
	if e.options.Destination != nil {
		e.texts.put(placeOfDestination, e.options.Destination.Append(e.texts.bytes, rec))
	}
	if err := e.format.fill(ctx, e, msg, rec); err != nil {
		return dst[:before], err
	}
	e.texts.end(msg)
	switch {
	case e.options.Transport != Kafka:
	case e.options.Key != nil && rec.Key.Name != "" && rec.Op != change.Actor:
		msg.Key = e.take(e.options.Key.Append(e.buffer, rec))
	case msg.Key == nil:
		msg.Key = e.take(appendKey(e.buffer, rec))
	}
	e.mark(msg, rec)
	e.appendHeaders(msg, rec)
	if e.options.Tombstones && rec.Op == change.Deleted && msg.Value != nil {
		tombstone := *msg
		tombstone.Value, tombstone.Headers = nil, nil
		dst = append(dst, tombstone)
	}
	return dst, nil
}

// mark puts what was done to the record into the headers, where the transport has any, whatever the format.
func (e *Encoder) mark(msg *sink.Message, rec *change.Record) {
	if rec.Marks == nil || e.options.Transport == File {
		return
	}
	headers := msg.Headers[:len(msg.Headers):len(msg.Headers)] // they may be those of every message
	if rec.Marks.Trimmed != "" {
		headers = append(headers, sink.Header{Name: sink.HeaderTrimmed, Value: headerText(rec.Marks.Trimmed)})
	}
	if rec.Marks.BeforeOmitted {
		headers = append(headers, sink.Header{Name: sink.HeaderBeforeOmitted, Value: "true"})
	}
	if rec.Marks.Replayed != "" {
		headers = append(headers, sink.Header{Name: sink.HeaderReplayed, Value: string(rec.Marks.Replayed)})
	}
	msg.Headers = headers
}

// take returns what was appended to the buffer.
func (e *Encoder) take(buffer []byte) []byte {
	start := len(e.buffer)
	e.buffer = buffer
	return buffer[start:len(buffer):len(buffer)]
}
