package encode

import (
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Options says how a sink's messages look.
type Options struct {
	Cluster    string   // the name, for people
	ClusterUID string   // the uid of namespace kube-system, for ids
	Subject    *Subject // nil where the sink has one place only
}

// Encoder turns records into messages for one sink. It is used by one goroutine: the messages of a batch share a buffer
// that Reset takes back.
type Encoder struct {
	options Options
	format  CloudEvents
	buffer  []byte
}

// NewEncoder returns an encoder of CloudEvents.
func NewEncoder(options Options) *Encoder {
	return &Encoder{options: options, format: CloudEvents{Cluster: options.Cluster}}
}

// maxKept is the largest buffer, in bytes, that an encoder keeps for the next batch.
const maxKept = 8 << 20

// Reset forgets the messages of the last batch; their bytes are overwritten.
func (e *Encoder) Reset() {
	if cap(e.buffer) > maxKept {
		e.buffer = nil
	}
	e.buffer = e.buffer[:0]
}

// Encode appends the record's message to dst. The message is valid until Reset.
func (e *Encoder) Encode(dst []sink.Message, rec *change.Record) []sink.Message {
	id := e.ID(rec)
	start := len(e.buffer)
	e.buffer = e.format.Append(e.buffer, id, rec)
	msg := sink.Message{
		ID: id, Op: rec.Op.String(), ResourceVersion: rec.ResourceVersion,
		Value: e.buffer[start:len(e.buffer):len(e.buffer)], Time: rec.Received,
	}
	if e.options.Subject != nil {
		msg.Destination = e.options.Subject.Of(rec)
	}
	return append(dst, msg)
}

// ID is the id that the record's message carries.
func (e *Encoder) ID(rec *change.Record) string { return rec.ID(e.options.ClusterUID).String() }
