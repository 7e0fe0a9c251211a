package transform

import (
	"fmt"
	"strconv"
	"strings"
)

// part is one step of a path: a field, an element of a list, or all of either.
type part struct {
	field   string
	element int
	kind    partKind
}

type partKind uint8

const (
	aField partKind = iota
	anElement
	anything // [*] and .*
)

// parsePath takes a path apart.
func parsePath(text string) (parts []part, err error) {
	rest := text
	if inner, braced := strings.CutPrefix(text, "{"); braced {
		var closed bool
		if rest, closed = strings.CutSuffix(inner, "}"); !closed {
			return nil, fmt.Errorf("a { without its }")
		}
	}
	rest = strings.TrimPrefix(rest, "$")
	if rest == "" || rest == "." {
		return nil, fmt.Errorf("it names the whole object; want a field, such as .spec.replicas")
	}
	for rest != "" {
		var p part
		if p, rest, err = parsePart(rest); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// parsePart takes the path's next part.
func parsePart(text string) (p part, rest string, err error) {
	if text[0] == '[' {
		return parseBracket(text[1:])
	}
	text = strings.TrimPrefix(text, ".")
	end := strings.IndexAny(text, ".[")
	if end < 0 {
		end = len(text)
	}
	name, rest := text[:end], text[end:]
	switch {
	case name == "":
		return p, "", fmt.Errorf("a part is empty; .. is not supported")
	case name == "*":
		return part{kind: anything}, rest, nil
	case strings.ContainsAny(name, " ]{}()'\"?@"):
		return p, "", fmt.Errorf("%q is not a field; write a name with special characters as ['name']", name)
	}
	return part{field: name}, rest, nil
}

// parseBracket takes what stands after a [.
func parseBracket(text string) (p part, rest string, err error) {
	if quote := text[:min(1, len(text))]; quote == "'" || quote == `"` {
		name, rest, closed := strings.Cut(text[1:], quote+"]")
		if !closed || name == "" {
			return p, "", fmt.Errorf("a [%s without its %s], or nothing between", quote, quote)
		}
		return part{field: name}, rest, nil
	}
	inner, rest, closed := strings.Cut(text, "]")
	if !closed {
		return p, "", fmt.Errorf("a [ without its ]")
	}
	if inner == "*" {
		return part{kind: anything}, rest, nil
	}
	index, err := strconv.Atoi(inner)
	if err != nil || index < 0 {
		return p, "", fmt.Errorf("[%s] is not supported; allowed: [*], an index such as [0], a field such as ['a.b/c']", inner)
	}
	return part{element: index, kind: anElement}, rest, nil
}
