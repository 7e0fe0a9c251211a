package encode

import (
	"fmt"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Text is a parsed template of a key or a header such as "{namespace}/{name}", in which the resource is in kubectl's
// form. What the record does not have is nothing.
type Text struct {
	parts   template
	cluster string
}

// NewText parses a template for the cluster.
func NewText(text, cluster string) (*Text, error) {
	parts, err := parseTemplate(text)
	if err != nil {
		return nil, err
	}
	return &Text{parts, cluster}, nil
}

// NewKey parses a template of keys. All records of an object must have one key: so it has nothing that may change.
func NewKey(text, cluster string) (*Text, error) {
	t, err := NewText(text, cluster)
	if err != nil {
		return nil, err
	}
	if placeholder := t.parts.changing(); placeholder != "" {
		return nil, fmt.Errorf("parse key template %q: {%s} can change, and an object's records would be in two partitions, in no order", text, placeholder)
	}
	return t, nil
}

// Append appends the record's text to dst.
func (t *Text) Append(dst []byte, rec *change.Record) []byte {
	for _, p := range t.parts {
		switch p.placeholder {
		case "":
			dst = append(dst, p.literal...)
		case "resource":
			dst = rec.Stream.Resource.AppendString(dst)
		default:
			dst = append(dst, value(p.placeholder, t.cluster, rec)...)
		}
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
