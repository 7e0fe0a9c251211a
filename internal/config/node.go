package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v2"
)

type kind int

const (
	scalar kind = iota
	sequence
	mapping
)

// node is one YAML value together with its line, which the YAML library tells only in its errors. A null is a nil
// node; aliases are followed.
type node struct {
	kind   kind
	line   int
	text   string // of a scalar, as written but without its quotes
	value  any    // of a scalar: a string, bool or number
	items  []*node
	fields []field // in the order of their lines
}

// field is one key of a mapping, with its value. Neither keys nor values are unique.
type field struct{ key, value *node }

// UnmarshalYAML takes the value as whatever it turns out to be.
func (n *node) UnmarshalYAML(unmarshal func(any) error) error {
	line, err := findLine(unmarshal)
	if err != nil {
		return err
	}
	n.line = line
	// Keys are pointers, so that a key given twice stays twice. The price: a key that overrides a merged one (<<)
	// is a key given twice, too.
	fields := make(map[*node]*node)
	if err = unmarshal(&fields); !isMismatch(err) {
		n.kind, n.fields = mapping, inOrder(fields)
		return err
	}
	if err = unmarshal(&n.items); !isMismatch(err) {
		n.kind = sequence
		return err
	}
	if err = unmarshal(&n.text); err != nil {
		return err
	}
	return unmarshal(&n.value)
}

// findLine asks for a value that YAML cannot have: the refusal says in which line it stands.
func findLine(unmarshal func(any) error) (int, error) {
	var impossible chan struct{}
	err := unmarshal(&impossible)
	if !isMismatch(err) {
		return 0, err
	}
	return leadingLine(err.(*yaml.TypeError).Errors[0]), nil
}

// leadingLine reads the number out of "line 3: did not find expected key", 0 where there is none.
func leadingLine(text string) int {
	var line int
	if _, err := fmt.Sscanf(text, "line %d:", &line); err != nil {
		return 0
	}
	return line
}

func isMismatch(err error) bool {
	var mismatch *yaml.TypeError
	return errors.As(err, &mismatch)
}

func inOrder(fields map[*node]*node) []field {
	ordered := make([]field, 0, len(fields))
	for key, value := range fields {
		ordered = append(ordered, field{key, value})
	}
	slices.SortFunc(ordered, func(a, b field) int {
		return cmp.Or(cmp.Compare(a.key.at(), b.key.at()), cmp.Compare(a.key.name(), b.key.name()))
	})
	return ordered
}

func (n *node) at() int {
	if n == nil {
		return 0
	}
	return n.line
}

// name is the node as a key.
func (n *node) name() string {
	if n == nil {
		return "null"
	}
	if n.kind != scalar {
		return n.describe()
	}
	return n.text
}

func (n *node) isString() bool {
	_, is := n.value.(string)
	return is
}

// describe shows the node as it was written, before any variable in it was replaced, so that no secret comes out.
func (n *node) describe() string {
	switch {
	case n == nil:
		return "nothing"
	case n.kind == mapping:
		return "a mapping"
	case n.kind == sequence:
		return "a list"
	case n.isString():
		return strconv.Quote(shorten(n.text))
	}
	return shorten(n.text)
}

func shorten(text string) string {
	const enough = 60
	runes := []rune(text)
	if len(runes) <= enough {
		return text
	}
	return string(runes[:enough]) + "..."
}
