package encode

import (
	"fmt"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Subject is a parsed template of NATS subjects such as "k8s.{cluster}.{group}.{resource}.{namespace}.{name}".
//
// In each value '.' becomes '_', and any other byte outside [-a-zA-Z0-9] becomes "=XX" in upper-case hex, so that the
// mapping is one to one and a value never spans tokens. The core group is "core"; a value that the record does not have
// is "-"; an object that is really named so is "=2D". A label is that of the object as it is written; when it changes,
// the object goes on under another subject.
type Subject struct {
	parts   template
	cluster string
}

// NewSubject parses a template for the cluster. It returns an error for an unknown placeholder, an unclosed brace, and
// text that no NATS subject can hold.
func NewSubject(template, cluster string) (*Subject, error) {
	parts, err := parseTemplate(template)
	if err != nil {
		return nil, err
	}
	s := &Subject{parts: parts, cluster: cluster}
	for token := range strings.SplitSeq(s.Filter(), ".") {
		if token == "" || strings.ContainsAny(token, " \t\r\n>") {
			return nil, fmt.Errorf("parse subject template %q: token %q is empty or holds space or '>'", template, token)
		}
	}
	return s, nil
}

// Of is the subject of the record.
func (s *Subject) Of(rec *change.Record) string { return string(s.Append(make([]byte, 0, 96), rec)) }

// Append appends the subject of the record to b.
func (s *Subject) Append(b []byte, rec *change.Record) []byte {
	for _, p := range s.parts {
		if p.placeholder == "" {
			b = append(b, p.literal...)
			continue
		}
		b = appendToken(b, value(p.placeholder, s.cluster, rec))
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
	if placeholder := s.parts.changing(); placeholder != "" {
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
