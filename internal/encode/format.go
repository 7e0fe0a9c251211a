package encode

import (
	"context"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

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
	// fill sets the value, and what of the headers and the key is the format's own. The id is in e.texts. A
	// *sink.RejectedError is about the record, which then never arrives; after any other error the record is tried
	// again. It returns soon after ctx ends.
	fill(ctx context.Context, e *Encoder, msg *sink.Message, rec *change.Record) error
}

func newFormat(o *Options) format {
	if o.Schemas != nil {
		return newRegistered(newPlain(o), o.Schemas)
	}
	return newPlain(o)
}

// newPlain is a format whose values are JSON.
func newPlain(o *Options) format {
	events := CloudEvents{Cluster: o.Cluster}
	switch o.Format {
	case FormatCloudEventsBinary:
		return newBinary(events, o.Transport)
	case FormatDebezium:
		return debezium{cluster: o.Cluster, version: o.Version, transport: o.Transport}
	case FormatObject:
		return object{transport: o.Transport}
	}
	return newStructured(events, o.Transport)
}

// structured is CloudEvents in structured mode.
type structured struct {
	events  CloudEvents
	headers []sink.Header // of every message
}

// newStructured follows the Kafka protocol binding (CloudEvents 1.0.2, 3.3.1): the media type is a header. On NATS the
// mode is told by the absence of attributes' headers.
func newStructured(events CloudEvents, transport Transport) structured {
	s := structured{events: events}
	if transport == Kafka {
		s.headers = []sink.Header{{Name: "content-type", Value: "application/cloudevents+json; charset=UTF-8"}}
	}
	return s
}

func (s structured) fill(_ context.Context, e *Encoder, msg *sink.Message, rec *change.Record) error {
	msg.Headers = s.headers
	msg.Value = e.take(s.events.Append(e.buffer, e.texts.ID(), rec))
	return nil
}

// object is the bare object. Where it is gone there is no value: a tombstone on Kafka, and elsewhere an empty message
// whose header kubecdc-op tells of the delete.
type object struct{ transport Transport }

func (o object) fill(_ context.Context, _ *Encoder, msg *sink.Message, rec *change.Record) error {
	switch {
	case rec.Op != change.Deleted:
		msg.Value = present(payload(rec))
	case o.transport != Kafka:
		msg.Value = []byte{}
	}
	return nil
}

// present makes a value of what may be none: a message without one is a tombstone.
func present(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}
