package encode

import (
	"fmt"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// placeholders are the names that a destination template may hold in braces, beside label:KEY.
const placeholders = "cluster, group, version, kind, resource, namespace, name"

// template is a parsed text with placeholders in braces.
type template []part

// part is literal text, or a placeholder.
type part struct {
	literal     string
	placeholder string
}

func parseTemplate(text string) (template, error) {
	var parts template
	for rest := text; rest != ""; {
		literal, after, found := strings.Cut(rest, "{")
		if literal != "" {
			parts = append(parts, part{literal: literal})
		}
		if !found {
			break
		}
		name, next, closed := strings.Cut(after, "}")
		if !closed {
			return nil, fmt.Errorf("parse template %q: '{' without '}'", text)
		}
		if _, isLabel := labelKey(name); !isLabel && !strings.Contains(", "+placeholders+",", ", "+name+",") {
			return nil, fmt.Errorf("parse template %q: unknown placeholder {%s}: allowed are %s and label:KEY", text, name, placeholders)
		}
		parts = append(parts, part{placeholder: name})
		rest = next
	}
	return parts, nil
}

// changing is a placeholder whose value may change for an object; "" is that there is none.
func (t template) changing() string {
	for _, p := range t {
		if _, isLabel := labelKey(p.placeholder); isLabel || p.placeholder == "version" {
			return p.placeholder
		}
	}
	return ""
}

// value is what the record puts in a placeholder's place; "" is nothing.
func value(placeholder, cluster string, rec *change.Record) string {
	if key, found := labelKey(placeholder); found {
		return label(key, rec)
	}
	res := &rec.Stream.Resource
	switch placeholder {
	case "cluster":
		return cluster
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
