package encode

import (
	"fmt"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Placeholders are the names that a destination template may hold in braces.
const Placeholders = "cluster, group, version, kind, resource, namespace, name"

// Subject is a parsed template of NATS subjects such as "k8s.{cluster}.{group}.{resource}.{namespace}.{name}".
//
// In each value '.' becomes '_', and any other byte outside [-a-zA-Z0-9] becomes "=XX" in upper-case hex, so that the
// mapping is one to one and a value never spans tokens. The core group is "core"; a value that the record does not
// have is "-"; an object that is really named so is "=2D".
type Subject struct {
	parts   []part
	cluster string
}

// part is literal text, or a placeholder.
type part struct {
	literal     string
	placeholder string
}

// NewSubject parses a template for the cluster. It returns an error for an unknown placeholder, an unclosed brace, and
// text that no NATS subject can hold.
func NewSubject(template, cluster string) (*Subject, error) {
	parts, err := parseTemplate(template)
	if err != nil {
		return nil, err
	}
	s := &Subject{parts: parts, cluster: cluster}
	for token := range strings.SplitSeq(s.wildcard(), ".") {
		if token == "" || strings.ContainsAny(token, " \t\r\n>") {
			return nil, fmt.Errorf("parse subject template %q: token %q is empty or holds space or '>'", template, token)
		}
	}
	return s, nil
}

func parseTemplate(template string) ([]part, error) {
	var parts []part
	for rest := template; rest != ""; {
		literal, after, found := strings.Cut(rest, "{")
		if literal != "" {
			parts = append(parts, part{literal: literal})
		}
		if !found {
			break
		}
		name, next, closed := strings.Cut(after, "}")
		if !closed {
			return nil, fmt.Errorf("parse template %q: '{' without '}'", template)
		}
		if !strings.Contains(", "+Placeholders+",", ", "+name+",") {
			return nil, fmt.Errorf("parse template %q: unknown placeholder {%s}: allowed are %s", template, name, Placeholders)
		}
		parts = append(parts, part{placeholder: name})
		rest = next
	}
	return parts, nil
}

// Of is the subject of the record.
func (s *Subject) Of(rec *change.Record) string {
	b := make([]byte, 0, 96)
	for _, p := range s.parts {
		if p.placeholder == "" {
			b = append(b, p.literal...)
			continue
		}
		b = appendToken(b, s.value(p.placeholder, rec))
	}
	return string(b)
}

func (s *Subject) value(placeholder string, rec *change.Record) string {
	res := &rec.Stream.Resource
	switch placeholder {
	case "cluster":
		return s.cluster
	case "group":
		if res.Group == "" {
			return "core"
		}
		return res.Group
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

// Filter is the narrowest wildcard subject that covers every subject of the template.
func (s *Subject) Filter() string { return s.wildcard() }

func (s *Subject) wildcard() string {
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
