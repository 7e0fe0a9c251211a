package encode

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/scan"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Subject is a parsed template of NATS subjects such as "k8s.{cluster}.{group}.{resource}.{namespace}.{name}".
//
// In each value '.' becomes '_', and any other byte outside [-a-zA-Z0-9] becomes "=XX" in upper-case hex, so that the
// mapping is one to one and a value never spans tokens. The core group is "core"; a value that the record does not have
// is "-"; an object that is really named so is "=2D". A label is that of the object as it is written; when it changes,
// the object goes on under another subject.
type Subject struct{ template }

// NewSubject parses a template for the cluster, of which package config has checked what a subject can hold.
func NewSubject(text, cluster string) (*Subject, error) {
	parsed, err := parseTemplate(text, cluster)
	return &Subject{parsed}, err
}

// Append appends the subject of the record to b.
func (s *Subject) Append(b []byte, rec *change.Record) []byte {
	for _, p := range s.parts {
		if p.placeholder == "" {
			b = append(b, p.literal...)
		} else {
			b = appendToken(b, value(p.placeholder, s.cluster, rec))
		}
	}
	return b
}

// StreamName is the template with the cluster's name in the place of "{cluster}", written as in a subject: no stream's
// name has a dot.
func StreamName(template, cluster string) string {
	return strings.ReplaceAll(template, "{cluster}", string(appendToken(nil, cluster)))
}

// Misfit says why the newest message of each subject may not be what there is of an object; "" is that each object has
// one subject, and no other has it. In later, resources may come that the template is for, too.
func (s *Subject) Misfit(later bool) string {
	if placeholder := s.Changing(); placeholder != "" {
		return fmt.Sprintf("{%s} can change, so that an object would stay under its old subject as it was: leave it out", placeholder)
	}
	before, has := "", map[string]bool{}
	for _, p := range s.parts {
		switch {
		case p.placeholder == "cluster":
		case p.placeholder == "" && strings.Trim(p.literal, tokenText) != "":
			before = ""
		case p.placeholder != "" && before != "":
			return fmt.Sprintf("{%s} and {%s} are in one token, so that objects may have the same: put a dot between them", before, p.placeholder)
		case p.placeholder != "":
			before, has[p.placeholder] = p.placeholder, true
		}
	}
	if later && (!has["group"] || !has["resource"] && !has["kind"]) {
		return "a resource that comes later may have the same subjects: have {group} and {resource} in them, or name the resources"
	}
	return ""
}

// tokenText is all that a value's token is made of.
const tokenText = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_="

// Filter is the narrowest wildcard subject that covers every subject of the template.
func (s *Subject) Filter() string {
	var b strings.Builder
	for _, p := range s.parts {
		switch p.placeholder {
		case "":
			b.WriteString(p.literal)
		case "cluster":
			b.Write(appendToken(nil, s.cluster))
		default:
			b.WriteByte('*')
		}
	}
	tokens := strings.Split(b.String(), ".")
	for i, token := range tokens {
		if strings.Contains(token, "*") { // a wildcard is a whole token
			tokens[i] = "*"
		}
	}
	return strings.Join(tokens, ".")
}

func appendToken(dst []byte, value string) []byte {
	const hex = "0123456789ABCDEF"
	switch value {
	case "":
		return append(dst, '-')
	case "-": // a name that RBAC allows
		return append(dst, "=2D"...)
	}
	for i := range len(value) {
		switch c := value[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-':
			dst = append(dst, c)
		case c == '.':
			dst = append(dst, '_')
		default:
			dst = append(dst, '=', hex[c>>4], hex[c&15])
		}
	}
	return dst
}

// Topic is a parsed template of Kafka topics such as "k8s.{cluster}.{resource}", in which the resource is in kubectl's
// form, "deployments.apps".
//
// Any byte of a value outside [-._a-zA-Z0-9], which Kafka does not take, becomes '_'. Names of namespaces and resources
// have none. A value that the record does not have is "-". A label is that of the object as it is written, or of its
// namespace; when it changes, the object goes on in another topic, and its order is kept within each.
type Topic struct {
	template
	aside bool // what frames the records has a topic of its own
}

// NewTopic parses a template for the cluster. What a topic can hold is checked where it is configured, and of the
// topics themselves by their sink.
func NewTopic(text, cluster string) (*Topic, error) {
	parsed, err := parseTemplate(text, cluster)
	return &Topic{template: parsed}, err
}

// FramesAside is the same template with the frames of records in topics of their own, so that the others have objects
// alone.
func (t *Topic) FramesAside() *Topic {
	aside := *t
	aside.aside = true
	return &aside
}

// Of is the topic of the record.
func (t *Topic) Of(rec *change.Record) string { return string(t.Append(make([]byte, 0, 64), rec)) }

// Append appends the topic of the record to b. A stream's frames that go aside go to one topic.
func (t *Topic) Append(b []byte, rec *change.Record) []byte {
	aside := t.aside && rec.Op.IsFrame()
	if aside {
		rec = &change.Record{Stream: rec.Stream}
	}
	for _, p := range t.parts {
		start := len(b)
		if b = p.append(b, t.cluster, rec); p.placeholder != "" {
			b = asTopic(b, start)
		}
	}
	if aside {
		b = append(b, sink.FramesSuffix...)
	}
	return b
}

// Fixed is the topic of all objects of the stream, false where objects of one stream go to several.
func (t *Topic) Fixed(stream *change.Stream) (string, bool) {
	for i := range t.parts {
		if t.parts[i].varies(stream) {
			return "", false
		}
	}
	return t.OfStream(stream), true
}

// Pattern is a regular expression of all topics that objects of the stream can go to.
func (t *Topic) Pattern(stream *change.Stream) string {
	return t.pattern(stream, func(p *part) bool { return p.varies(stream) })
}

// PatternOf is a regular expression of all topics that records of the resource can go to, which kubectl calls so; "" is
// any resource.
func (t *Topic) PatternOf(resource string) string {
	name, group, _ := strings.Cut(resource, ".")
	frames := ""
	if t.aside {
		frames = "(" + sink.FramesSuffix + ")?"
	}
	return t.pattern(&change.Stream{Resource: change.Resource{Name: name, Group: group}}, func(p *part) bool {
		switch p.placeholder {
		case "", "cluster":
			return false
		case "resource", "group":
			return resource == ""
		}
		return true
	}) + frames
}

// IsDistinct says whether there is text in all of its topics, so that they can be told from others of a broker.
func (t *Topic) IsDistinct() bool {
	return slices.ContainsFunc(t.parts, func(p part) bool {
		return p.placeholder == "cluster" || strings.Trim(p.literal, "-._") != ""
	})
}

func (t *Topic) pattern(stream *change.Stream, varies func(*part) bool) string {
	rec := &change.Record{Stream: stream}
	var b strings.Builder
	for _, p := range t.parts {
		if varies(&p) {
			b.WriteString("[-._a-zA-Z0-9]+")
			continue
		}
		one := Topic{template: template{[]part{p}, t.cluster}}
		b.WriteString(regexp.QuoteMeta(one.Of(rec)))
	}
	return b.String()
}

// varies says whether the part differs between records of the stream.
func (p *part) varies(stream *change.Stream) bool {
	spread := stream.Namespace == "" && !stream.Resource.ClusterScoped
	return isLabel(p.placeholder) || p.placeholder == "name" || p.placeholder == "namespace" && spread
}

// ByObject says whether whoever makes an object or its namespace chooses its topic, by a label or the name.
func (t *Topic) ByObject() bool {
	return slices.ContainsFunc(t.parts, func(p part) bool {
		return isLabel(p.placeholder) || p.placeholder == "name"
	})
}

// IsOfFrames says whether the topic is one that frames have for themselves.
func IsOfFrames(topic string) bool { return strings.HasSuffix(topic, sink.FramesSuffix) }

// OfStream is the topic of objects of the stream of which no more is known than that.
func (t *Topic) OfStream(stream *change.Stream) string { return t.Of(&change.Record{Stream: stream}) }

// OfFrames is the topic of the stream's frames: the begin and end of its snapshots, and gaps.
func (t *Topic) OfFrames(stream *change.Stream) string {
	return t.Of(&change.Record{Op: change.Gap, Stream: stream})
}

// asTopic makes the value that begins at start a part of a topic's name.
func asTopic(b []byte, start int) []byte {
	if len(b) == start {
		return append(b, '-')
	}
	for i, c := range b[start:] {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._", c) >= 0) {
			b[start+i] = '_'
		}
	}
	return b
}

// placeholders are the names that a destination template may hold in braces, beside label:KEY and namespaceLabel:KEY.
const placeholders = "cluster, group, version, kind, resource, namespace, name"

// template is a parsed text with placeholders in braces, for a cluster.
type template struct {
	parts   []part
	cluster string
}

// part is literal text, or a placeholder.
type part struct {
	literal     string
	placeholder string
}

func parseTemplate(text, cluster string) (t template, err error) {
	t.cluster = cluster
	for rest := text; rest != ""; {
		literal, after, found := strings.Cut(rest, "{")
		if literal != "" {
			t.parts = append(t.parts, part{literal: literal})
		}
		if !found {
			break
		}
		name, next, closed := strings.Cut(after, "}")
		if !closed {
			return t, fmt.Errorf("parse template %q: '{' without '}'", text)
		}
		if !isLabel(name) && !strings.Contains(", "+placeholders+",", ", "+name+",") {
			return t, fmt.Errorf("parse template %q: unknown placeholder {%s}: allowed are %s, label:KEY and namespaceLabel:KEY", text, name, placeholders)
		}
		t.parts = append(t.parts, part{placeholder: name})
		rest = next
	}
	return t, nil
}

// append appends what the record puts in the part's place, the resource in kubectl's form.
func (p *part) append(dst []byte, cluster string, rec *change.Record) []byte {
	switch p.placeholder {
	case "":
		return append(dst, p.literal...)
	case "resource":
		return rec.Stream.Resource.AppendString(dst)
	}
	return append(dst, value(p.placeholder, cluster, rec)...)
}

// Changing is a placeholder whose value may change for an object, which then goes on in another place; "" is that there
// is none.
func (t *template) Changing() string {
	for _, p := range t.parts {
		if isLabel(p.placeholder) || p.placeholder == "version" {
			return p.placeholder
		}
	}
	return ""
}

// groupOf is the resource's group, "core" for that without a name.
func groupOf(resource *change.Resource) string { return cmp.Or(resource.Group, "core") }

// value is what the record puts in a placeholder's place; "" is nothing.
func value(placeholder, cluster string, rec *change.Record) string {
	if key, found := strings.CutPrefix(placeholder, labelPrefix); found {
		return label(key, rec)
	}
	if key, found := strings.CutPrefix(placeholder, namespaceLabelPrefix); found {
		return rec.NamespaceLabels[key]
	}
	res := &rec.Stream.Resource
	switch placeholder {
	case "cluster":
		return cluster
	case "group":
		return groupOf(res)
	case "version":
		return res.Version
	case "kind":
		return res.Kind
	case "resource":
		return res.Name
	case "namespace":
		return namespace(rec)
	}
	return rec.Key.Name
}

// labelPrefix begins a placeholder of a label, as {label:app.kubernetes.io/name}; namespaceLabelPrefix one of a label
// of the object's namespace.
const (
	labelPrefix          = "label:"
	namespaceLabelPrefix = "namespaceLabel:"
)

// isLabel says whether the placeholder names a label, of the object or of its namespace.
func isLabel(placeholder string) bool {
	of, key, found := strings.Cut(placeholder, ":")
	return found && key != "" && (of+":" == labelPrefix || of+":" == namespaceLabelPrefix)
}

// label is the value of the object's label, "" where it has none. A delete whose last state nobody saw has the labels
// of the last one that was delivered.
func label(key string, rec *change.Record) string {
	text := finalState(rec)
	if !rec.Op.OfObject() || text == nil {
		return ""
	}
	var proof scan.Proof
	proof.Prove(text, "")
	value, _ := proof.FindText("metadata", "labels", key) // of another form it is none that a selector would find
	return value
}
