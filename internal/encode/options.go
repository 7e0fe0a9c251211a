package encode

import "github.com/kubecdc/kubecdc/internal/change"

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
