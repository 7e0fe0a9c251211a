package encode

import (
	"errors"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// appendActor appends the CloudEvent of who asked for a change. The record has the attributes of its object, and data.
func (c CloudEvents) appendActor(dst, id []byte, rec *change.Record) []byte {
	dst = append(append(dst, `{"specversion":"1.0","id":"`...), id...)
	dst = c.appendSource(append(dst, `","source":`...))
	dst = append(append(append(dst, `,"type":"`+typePrefix...), rec.Op.String()...), '"')
	dst = append(appendTime(append(dst, `,"time":"`...), rec.Received.UTC()), '"')
	dst = appendString(append(dst, `,"datacontenttype":"application/json","cluster":`...), c.Cluster)
	return append(append(dst, ','), rec.Object[1:]...) // without its first bracket
}

// takesActors is an error where the format has no place for who asked for a change: the formats of other projects say
// what an object was and is.
func takesActors(of format, rec *change.Record) error {
	if _, events := of.(structured); events || rec.Op != change.Actor {
		return nil
	}
	return &sink.RejectedError{Reason: "invalid", Err: errors.New("only format cloudevents has actors: choose it, or leave actors out")}
}
