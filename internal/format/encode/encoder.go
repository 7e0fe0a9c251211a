package encode

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/typed"
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
	e := &Encoder{options: options, format: newPlain(&options)}
	if options.Schemas != nil {
		_, isEnvelope := e.format.(debezium)
		e.format = &registered{format: e.format, schemas: options.Schemas, debezium: isEnvelope, encoders: map[string]*typed.Encoder{}}
	}
	return e
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
	if _, events := e.format.(structured); !events && rec.Op == change.Actor { // others say what an object was and is
		err := errors.New("only format cloudevents has actors: choose it, or leave actors out")
		return dst, &sink.RejectedError{Reason: "invalid", Err: err}
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
	as := e.format
	aside := e.options.FramesAside && rec.Op.IsFrame()
	if aside {
		as = object{e.options.Transport}
	}
	if err := as.fill(ctx, &e.memory, msg, told(rec)); err != nil {
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
	if aside {
		msg.Partition = []byte("frames") // so they have an order, also where somebody made the topic otherwise
	}
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

// appendHeaders appends what was done to the record, where the transport has headers, whatever the format, and those
// that are configured.
func (e *Encoder) appendHeaders(msg *sink.Message, rec *change.Record) {
	headers := slices.Clip(msg.Headers) // they may be those of every message
	if e.options.Transport != File {
		text := func(name, value string) {
			headers = append(headers, sink.Header{Name: sink.HeaderMark + name, Value: headerText(value)})
		}
		marks(rec, text, func(name string) { text(name, "true") })
	}
	for _, h := range e.options.Headers {
		text := string(h.Text.Append(nil, rec))
		if e.options.Transport == NATS {
			text = headerText(text)
		}
		if text != "" {
			headers = append(headers, sink.Header{Name: h.Name, Value: text})
		}
	}
	msg.Headers = headers
}

// Routes is a Destination of which some streams have their own.
type Routes struct {
	Others Destination
	// Own is where the stream's records go, nil where that is Others.
	Own func(*change.Stream) Destination
}

// Append appends the record's place to dst.
func (r Routes) Append(dst []byte, rec *change.Record) []byte {
	return r.To(rec.Stream).Append(dst, rec)
}

// To is where the stream's records go.
func (r Routes) To(stream *change.Stream) Destination {
	if own := r.Own(stream); own != nil {
		return own
	}
	return r.Others
}

// Options says how a sink's messages look.
type Options struct {
	Cluster     string // the name, for people
	ClusterUID  string // the uid of namespace kube-system, for ids
	Version     string // of the exporter
	Format      string // one of the formats; "" is FormatCloudEvents
	Transport   Transport
	Destination Destination // nil where the sink has one place only
	// FramesAside is for a Destination that puts frames elsewhere: they are JSON there, whatever the format, in one
	// partition.
	FramesAside bool
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

// newPlain is a format whose values are JSON.
func newPlain(o *Options) format {
	switch o.Format {
	case FormatCloudEventsBinary:
		return newBinary(o.Cluster, o.Transport)
	case FormatDebezium:
		return debezium{cluster: o.Cluster, version: o.Version, transport: o.Transport}
	case FormatObject:
		return object{transport: o.Transport}
	}
	s := structured{cluster: o.Cluster}
	if o.Transport == Kafka { // on NATS the mode is told by the absence of attributes' headers
		s.headers = []sink.Header{{Name: headerMedia, Value: "application/cloudevents+json; charset=UTF-8"}}
	}
	return s
}

// Text is a parsed template of a key or a header such as "{namespace}/{name}", in which the resource is in kubectl's
// form. What the record does not have is nothing.
type Text struct{ template }

// NewText parses a template for the cluster.
func NewText(text, cluster string) (*Text, error) {
	parsed, err := parseTemplate(text, cluster)
	return &Text{parsed}, err
}

// Append appends the record's text to dst.
func (t *Text) Append(dst []byte, rec *change.Record) []byte {
	for _, p := range t.parts {
		dst = p.append(dst, t.cluster, rec)
	}
	return dst
}

// NamesObject says whether keys of the template tell the objects of a resource apart, so that a compacted topic keeps
// each. "" is the key of the format.
func NamesObject(template string) bool {
	return template == "" || strings.Contains(template, "{namespace}/{name}") // no name has a slash in it
}

// Header is a header that every message has, but where its text is empty.
type Header struct {
	Name string
	Text *Text
}

// structured is CloudEvents 1.0 in structured JSON mode, one object without a newline. On Kafka the media type is a
// header (CloudEvents 1.0.2, Kafka protocol binding 3.3.1).
type structured struct {
	cluster string        // the name in attribute cluster and, after /clusters/, in source
	headers []sink.Header // of every message
}

func (s structured) fill(_ context.Context, m *memory, msg *sink.Message, rec *change.Record) error {
	msg.Headers = s.headers
	msg.Value = m.take(s.append(m.buffer, m.texts.ID(), rec))
	return nil
}

// append appends the record as one JSON object to dst. The id is the record's change.ID as text.
func (s structured) append(dst, id []byte, rec *change.Record) []byte {
	dst = append(append(append(dst, `{"specversion":"1.0","id":"`...), id...), `","source":`...)
	start := len(dst)
	dst = endString(append(append(dst, `"/clusters/`...), s.cluster...), start)
	dst = append(append(append(dst, `,"type":"`+typePrefix...), rec.Op.String()...), '"')
	if rec.Op != change.Actor {
		dst = append(dst, `,"subject":`...)
		start = len(dst)
		dst = endString(appendPath(append(dst, '"'), rec), start)
	}
	dst = append(rec.Received.UTC().AppendFormat(append(dst, `,"time":"`...), timeFormat), '"')
	if rec.Op == change.Actor { // whose record has the attributes of its object, and data
		dst = appendMember(append(dst, `,"datacontenttype":"application/json"`...), "cluster", s.cluster)
		return append(append(dst, ','), rec.Object[1:]...) // without its first bracket
	}
	data, mediaType := content(rec)
	if data != nil {
		dst = append(append(append(dst, `,"datacontenttype":"`...), mediaType...), '"')
	}
	text := func(name, value string) { dst = appendMember(dst, name, value) }
	extensions(rec, s.cluster, text, func(name string) { dst = appendTrue(dst, name) })
	if data != nil {
		dst = append(append(dst, `,"data":`...), data...)
	}
	return append(dst, '}')
}
