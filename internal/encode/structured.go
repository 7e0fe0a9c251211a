package encode

import (
	"context"
	"errors"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

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

func (s structured) fill(_ context.Context, m *memory, msg *sink.Message, rec *change.Record) error {
	msg.Headers = s.headers
	msg.Value = m.take(s.events.Append(m.buffer, m.texts.ID(), rec))
	return nil
}

// takesActors is an error where the format has no place for who asked for a change: the formats of other projects say
// what an object was and is.
func takesActors(of format, rec *change.Record) error {
	if _, events := of.(structured); events || rec.Op != change.Actor {
		return nil
	}
	return &sink.RejectedError{Reason: "invalid", Err: errors.New("only format cloudevents has actors: choose it, or leave actors out")}
}
