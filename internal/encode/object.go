package encode

import (
	"context"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

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
