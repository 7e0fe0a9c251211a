package encode

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// maxTopic is the length of the longest name of a topic (Kafka, org.apache.kafka.common.internals.Topic).
const maxTopic = 249

// Topic is a parsed template of Kafka topics such as "k8s.{cluster}.{resource}", in which the resource is in kubectl's
// form, "deployments.apps".
//
// Any byte of a value outside [-._a-zA-Z0-9], which Kafka does not take, becomes '_'. Names of namespaces and resources
// have none. A value that the record does not have is "-". A label is that of the object as it is written; when it
// changes, the object goes on in another topic, and its order is kept within each.
type Topic struct {
	parts   template
	cluster string
}

// NewTopic parses a template for the cluster. It returns an error for an unknown placeholder, an unclosed brace, and
// text that no topic can hold.
func NewTopic(text, cluster string) (*Topic, error) {
	parts, err := parseTemplate(text)
	if err != nil {
		return nil, err
	}
	t := &Topic{parts: parts, cluster: cluster}
	for _, p := range parts {
		if p.placeholder == "" && p.literal != string(appendTopic(nil, p.literal)) {
			return nil, fmt.Errorf("parse topic template %q: %q holds what no topic can: use letters, digits, '.', '_' and '-'", text, p.literal)
		}
	}
	least := t.Of(&change.Record{Stream: &change.Stream{}})
	if least == "." || least == ".." || text == "" {
		return nil, fmt.Errorf("parse topic template %q: a topic cannot be %q: add a literal part", text, least)
	}
	if len(least) > maxTopic {
		return nil, fmt.Errorf("parse topic template %q: it makes topics of more than %d characters: shorten it", text, maxTopic)
	}
	return t, nil
}

// Of is the topic of the record.
func (t *Topic) Of(rec *change.Record) string { return string(t.Append(make([]byte, 0, 64), rec)) }

// Append appends the topic of the record to b.
func (t *Topic) Append(b []byte, rec *change.Record) []byte {
	for _, p := range t.parts {
		switch p.placeholder {
		case "":
			b = append(b, p.literal...)
		case "resource":
			b = appendResource(b, &rec.Stream.Resource)
		default:
			b = appendTopic(b, value(p.placeholder, t.cluster, rec))
		}
	}
	return b
}

// Fixed is the topic of all records of the stream, false where records of one stream go to several.
func (t *Topic) Fixed(stream *change.Stream) (string, bool) {
	for i := range t.parts {
		if t.parts[i].varies(stream) {
			return "", false
		}
	}
	return t.OfFrames(stream), true
}

// Pattern is a regular expression of all topics that records of the stream can go to.
func (t *Topic) Pattern(stream *change.Stream) string {
	return t.pattern(stream, func(p *part) bool { return p.varies(stream) })
}

// PatternOf is a regular expression of all topics that records of the resource can go to, which kubectl calls so; "" is
// any resource.
func (t *Topic) PatternOf(resource string) string {
	name, group, _ := strings.Cut(resource, ".")
	return t.pattern(&change.Stream{Resource: change.Resource{Name: name, Group: group}}, func(p *part) bool {
		switch p.placeholder {
		case "", "cluster":
			return false
		case "resource", "group":
			return resource == ""
		}
		return true
	})
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
		one := Topic{parts: template{p}, cluster: t.cluster}
		b.WriteString(regexp.QuoteMeta(one.Of(rec)))
	}
	return b.String()
}

// varies says whether the part differs between records of the stream.
func (p *part) varies(stream *change.Stream) bool {
	spread := stream.Namespace == "" && !stream.Resource.ClusterScoped
	_, isLabel := labelKey(p.placeholder)
	return isLabel || p.placeholder == "name" || p.placeholder == "namespace" && spread
}

// ByObject says whether whoever makes an object chooses its topic, by a label or the name.
func (t *Topic) ByObject() bool {
	return slices.ContainsFunc(t.parts, func(p part) bool {
		_, isLabel := labelKey(p.placeholder)
		return isLabel || p.placeholder == "name"
	})
}

// Changing is a placeholder whose value may change for an object, which then goes on in another topic; "" is that there
// is none.
func (t *Topic) Changing() string { return t.parts.changing() }

// OfFrames is the topic of what speaks of the stream: its snapshots' begin and end, gaps, and whatever has no object.
func (t *Topic) OfFrames(stream *change.Stream) string { return t.Of(&change.Record{Stream: stream}) }

func appendTopic(dst []byte, value string) []byte {
	if value == "" {
		return append(dst, '-')
	}
	for i := range len(value) {
		c := value[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._", c) >= 0 {
			dst = append(dst, c)
		} else {
			dst = append(dst, '_')
		}
	}
	return dst
}

// appendResource appends the resource in kubectl's form.
func appendResource(dst []byte, res *change.Resource) []byte {
	dst = appendTopic(dst, res.Name)
	if res.Group == "" {
		return dst
	}
	return appendTopic(append(dst, '.'), res.Group)
}
