package encode

import (
	"strconv"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// binary is CloudEvents in binary mode: each attribute is a header, and data is the value.
//
// Kafka: "ce_" before the name, datacontenttype as content-type, values in UTF-8 (CloudEvents 1.0.2, Kafka protocol
// binding 3.2). NATS: "ce-" before each name, also of datacontenttype, and values percent-encoded as for HTTP
// (CloudEvents, NATS protocol binding 3.1, HTTP protocol binding 3.1.3.2).
type binary struct {
	events      CloudEvents
	names       map[string]string // the header of an attribute
	source      string
	contentType string
	encoded     bool // values are percent-encoded
}

// attributes are all that an event can have, in the order of structured mode.
func attributes() []string {
	return []string{
		"specversion", "id", "source", "type", "subject", "time", "cluster", "group", "version", "resource",
		"namespace", "name", "uid", "resourceversion", "finalstateunknown", "snapshot", "reason",
		"trimmed", "replayed",
	}
}

func newBinary(events CloudEvents, transport Transport) *binary {
	b := &binary{events: events, names: map[string]string{}, contentType: "content-type", encoded: transport == NATS}
	prefix := "ce_"
	if transport == NATS {
		prefix, b.contentType = "ce-", "ce-datacontenttype"
	}
	for _, name := range attributes() {
		b.names[name] = prefix + name
	}
	b.source = b.text("/clusters/" + events.Cluster)
	return b
}

func (b *binary) fill(e *Encoder, msg *sink.Message, rec *change.Record) {
	start := len(e.headers)
	b.attributes(msg.ID, rec, func(name, value string) {
		e.headers = append(e.headers, sink.Header{Name: b.names[name], Value: value})
	})
	data := payload(rec)
	if data != nil {
		e.headers = append(e.headers, sink.Header{Name: b.contentType, Value: "application/json"})
	}
	msg.Headers = e.headers[start:len(e.headers):len(e.headers)]
	msg.Value = present(data)
}

// attributes adds each attribute that the record has. What cannot hold an odd character is not looked through for one.
func (b *binary) attributes(id string, rec *change.Record, add func(name, value string)) {
	res := &rec.Stream.Resource
	add("specversion", "1.0")
	add("id", b.text(id))
	add("source", b.source)
	add("type", typePrefix+rec.Op.String())
	add("subject", b.text(string(appendPath(nil, rec))))
	add("time", rec.Received.UTC().Format(timeFormat))
	add("cluster", b.text(b.events.Cluster))
	add("group", res.Group)
	add("version", res.Version)
	add("resource", res.Name)
	optional := func(name, value string) {
		if value != "" {
			add(name, b.text(value))
		}
	}
	optional("namespace", namespace(rec))
	optional("name", rec.Key.Name)
	optional("uid", rec.UID)
	optional("resourceversion", rec.ResourceVersion)
	if rec.FinalStateUnknown {
		add("finalstateunknown", strconv.FormatBool(true))
	}
	if s := rec.Snapshot; s != nil {
		add("snapshot", s.ID)
		add("reason", string(s.Reason))
	}
	if rec.Marks != nil {
		optional("trimmed", rec.Marks.Trimmed)
		optional("replayed", string(rec.Marks.Replayed))
	}
}

// text is the value as the transport's headers take it.
func (b *binary) text(value string) string {
	if !b.encoded || !needsPercent(value) {
		return value
	}
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, len(value)+8)
	for i := range len(value) {
		if c := value[i]; percentEncoded(c) {
			out = append(out, '%', hex[c>>4], hex[c&15])
		} else {
			out = append(out, c)
		}
	}
	return string(out)
}

func needsPercent(value string) bool {
	for i := range len(value) {
		if percentEncoded(value[i]) {
			return true
		}
	}
	return false
}

// percentEncoded says which bytes of a value in UTF-8 are: all that are not printable ASCII, space, quote and percent.
func percentEncoded(c byte) bool { return c <= ' ' || c >= 0x7f || c == '"' || c == '%' }
