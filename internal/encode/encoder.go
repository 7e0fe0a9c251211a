package encode

import (
	"context"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Encoder turns records into messages for one sink. It is used by one goroutine: the messages of a batch share memory
// that Reset takes back.
type Encoder struct {
	options Options
	format  format
	memory
}

// NewEncoder returns an encoder.
func NewEncoder(options Options) *Encoder {
	return &Encoder{options: options, format: newFormat(&options)}
}

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
	if err := e.format.fill(ctx, &e.memory, msg, told(rec)); err != nil {
		return dst[:before], err
	}
	e.texts.end(msg)
	switch {
	case e.options.Transport != Kafka:
	case e.options.Key != nil && rec.Key.Name != "" && rec.Op != change.Actor:
		e.key(msg, rec, e.options.Key.Append, appendKey)
	case msg.Key == nil:
		e.key(msg, rec, appendKey, appendKey)
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

// told is what formats tell of the record: of a delete that goes without its last state, nothing of that. It still goes
// where the object went.
func told(rec *change.Record) *change.Record {
	if rec.Op != change.Deleted || rec.Remarks == nil || !rec.Remarks.BeforeOmitted {
		return rec
	}
	bare := *rec
	bare.Object, bare.Before = nil, nil
	return &bare
}

// mark puts what was done to the record into the headers, where the transport has any, whatever the format.
func (e *Encoder) mark(msg *sink.Message, rec *change.Record) {
	if rec.Remarks == nil || e.options.Transport == File {
		return
	}
	headers := msg.Headers[:len(msg.Headers):len(msg.Headers)] // they may be those of every message
	if rec.Remarks.Trimmed != "" {
		headers = append(headers, sink.Header{Name: sink.HeaderTrimmed, Value: headerText(rec.Remarks.Trimmed)})
	}
	if rec.Remarks.BeforeOmitted {
		headers = append(headers, sink.Header{Name: sink.HeaderBeforeOmitted, Value: "true"})
	}
	if rec.Remarks.Replayed != "" {
		headers = append(headers, sink.Header{Name: sink.HeaderReplayed, Value: string(rec.Remarks.Replayed)})
	}
	msg.Headers = headers
}

// appendHeaders appends those that are configured.
func (e *Encoder) appendHeaders(msg *sink.Message, rec *change.Record) {
	if len(e.options.Headers) == 0 {
		return
	}
	headers := msg.Headers[:len(msg.Headers):len(msg.Headers)] // they may be those of every message
	for _, h := range e.options.Headers {
		text := string(h.Text.Append(nil, rec))
		if text == "" {
			continue
		}
		if e.options.Transport == NATS {
			text = headerText(text)
		}
		headers = append(headers, sink.Header{Name: h.Name, Value: text})
	}
	msg.Headers = headers
}
