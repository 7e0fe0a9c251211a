package encode

import (
	"context"
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
	names       map[string]string    // the header of an attribute
	types       map[change.Op]string // the attribute of that name
	source      string
	cluster     string
	contentType string
	encoded     bool // values are percent-encoded
}

// headerMedia has the media type of data on Kafka.
const headerMedia = "content-type"

// attributes are all that an event can have, in the order of structured mode.
func attributes() []string {
	return []string{
		"specversion", "id", "source", "type", "subject", "time", "cluster", "group", "version", "resource",
		"namespace", "name", "uid", "resourceversion", "finalstateunknown", "snapshot", "reason",
		"base", "before", "changed", "changedcut", "actor", "involved", "trimmed", "beforeomitted", "replayed",
	}
}

func newBinary(events CloudEvents, transport Transport) *binary {
	b := &binary{events: events, names: map[string]string{}, types: map[change.Op]string{}, contentType: headerMedia, encoded: transport == NATS}
	prefix := "ce_"
	if transport == NATS {
		prefix, b.contentType = "ce-", "ce-datacontenttype"
	}
	for _, name := range attributes() {
		b.names[name] = prefix + name
	}
	for op := change.Added; op <= change.Gap; op++ {
		b.types[op] = typePrefix + op.String()
	}
	b.source, b.cluster = b.text("/clusters/"+events.Cluster), b.text(events.Cluster)
	return b
}

func (b *binary) fill(_ context.Context, m *memory, msg *sink.Message, rec *change.Record) error {
	h := headers{binary: b, m: m, start: len(m.headers)}
	h.attributes(rec)
	data, mediaType := content(rec)
	if data != nil {
		m.headers = append(m.headers, sink.Header{Name: b.contentType, Value: mediaType})
	}
	msg.Headers = m.headers[h.start:len(m.headers):len(m.headers)]
	msg.Value = present(data)
	return nil
}

// text is the value as the transport's headers take it.
func (b *binary) text(value string) string {
	if !b.encoded || !needsPercent(value) {
		return value
	}
	return string(appendPercent(nil, value))
}

// headers are those of one message, which start at an index of the encoder's.
type headers struct {
	*binary
	m     *memory
	start int
}

// attributes adds each attribute that the record has. What cannot hold an odd character is not looked through for one.
func (h headers) attributes(rec *change.Record) {
	res := &rec.Stream.Resource
	h.add("specversion", "1.0")
	h.id()
	h.add("source", h.source)
	h.add("type", h.types[rec.Op])
	h.made("subject", appendPath(h.m.texts.bytes, rec))
	h.made("time", appendTime(h.m.texts.bytes, rec.Received.UTC()))
	h.add("cluster", h.cluster)
	h.add("group", res.Group)
	h.add("version", res.Version)
	h.add("resource", res.Name)
	h.optional("namespace", namespace(rec))
	h.optional("name", rec.Key.Name)
	h.optional("uid", rec.UID)
	h.optional("resourceversion", rec.ResourceVersion)
	if rec.FinalStateUnknown {
		h.add("finalstateunknown", strconv.FormatBool(true))
	}
	if s := rec.Snapshot; s != nil {
		h.add("snapshot", s.ID)
		h.add("reason", string(s.Reason))
	}
	h.optional("base", rec.Base)
	h.optional("before", string(previous(rec)))
	h.optional("changed", string(rec.Changed))
	if rec.ChangedCut {
		h.add("changedcut", strconv.FormatBool(true))
	}
	h.optional("actor", string(rec.Actor))
	h.optional("involved", string(rec.Involved))
	if rec.Remarks != nil {
		h.optional("trimmed", rec.Remarks.Trimmed)
		if rec.Remarks.BeforeOmitted {
			h.add("beforeomitted", strconv.FormatBool(true))
		}
		h.optional("replayed", string(rec.Remarks.Replayed))
	}
}

// add adds a header with the value as it is.
func (h headers) add(name, value string) {
	h.m.headers = append(h.m.headers, sink.Header{Name: h.names[name], Value: value})
}

// optional adds a header with the value as the transport takes it, or none where it is empty.
func (h headers) optional(name, value string) {
	if value != "" {
		h.add(name, h.text(value))
	}
}

// id adds the header of the id.
func (h headers) id() {
	texts := &h.m.texts
	if h.encoded && needsPercent(texts.ID()) {
		h.made("id", append(texts.bytes, texts.ID()...))
		return
	}
	h.add("id", "")
	texts.share(len(h.m.headers) - 1 - h.start)
}

// made adds a header whose value was appended to the encoder's texts.
func (h headers) made(name string, bytes []byte) {
	texts := &h.m.texts
	start := len(texts.bytes)
	if value := bytes[start:]; h.encoded && needsPercent(value) {
		bytes = appendPercent(bytes[:start], string(value))
	}
	h.add(name, "")
	texts.put(len(h.m.headers)-1-h.start, bytes)
}

// appendPercent appends the value in percent-encoding.
func appendPercent(dst []byte, value string) []byte {
	const hex = "0123456789ABCDEF"
	for i := range len(value) {
		if c := value[i]; percentEncoded(c) {
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

func needsPercent[T string | []byte](value T) bool {
	for i := range len(value) {
		if percentEncoded(value[i]) {
			return true
		}
	}
	return false
}

// percentEncoded says which bytes of a value in UTF-8 are: all that are not printable ASCII, space, quote and percent.
func percentEncoded(c byte) bool { return c <= ' ' || c >= 0x7f || c == '"' || c == '%' }

// headerText is a value that every transport takes: percent-encoded where it is not printable ASCII.
func headerText(value string) string { return (&binary{encoded: true}).text(value) }
