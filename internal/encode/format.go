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
	// fill sets the value, and what of the headers and the key is the format's own. The id is in m.texts. A
	// *sink.RejectedError is about the record, which then never arrives; after any other error the record is tried
	// again. It returns soon after ctx ends.
	fill(ctx context.Context, m *memory, msg *sink.Message, rec *change.Record) error
}
