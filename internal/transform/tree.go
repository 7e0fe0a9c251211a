package transform

import "fmt"

// rule is a set of kinds of rules.
type rule uint8

const (
	drop rule = 1 << iota
	keep
	redact
	inside // the value is the text of an object
	fields // the value names fields, and values
)

// node is a place in the tree of all paths.
type node struct {
	fields   map[string]*node
	names    []named // the fields again
	elements map[int]*node
	any      *node
	ends     rule // of the paths that end here
	leads    rule // of the paths that go on
}

// named is a field with its name.
type named struct {
	name string
	node *node
}

// add enters paths of a rule, which an error names.
func (n *node) add(r rule, name string, paths []string) error {
	for _, text := range paths {
		parts, err := parsePath(text)
		if err != nil {
			return fmt.Errorf("%s path %q: %w", name, text, err)
		}
		at := n
		for _, p := range parts {
			at.leads |= r
			at = at.child(p)
		}
		at.ends |= r
	}
	return nil
}

// few is how many fields are compared one after the other, which for short names is faster than a map.
const few = 8

// field is where the field's name leads, nil for nowhere.
func (n *node) field(name []byte) *node {
	if len(n.names) > few {
		return n.fields[string(name)]
	}
	for i := range n.names {
		if one := &n.names[i]; one.name == string(name) {
			return one.node
		}
	}
	return nil
}

// child is where a part leads.
func (n *node) child(p part) *node {
	switch p.kind {
	case anElement:
		if n.elements == nil {
			n.elements = map[int]*node{}
		}
		return child(n.elements, p.element)
	case anything:
		if n.any == nil {
			n.any = &node{}
		}
		return n.any
	}
	if n.fields == nil {
		n.fields = map[string]*node{}
	}
	found := child(n.fields, p.field)
	if len(n.names) < len(n.fields) {
		n.names = append(n.names, named{p.field, found})
	}
	return found
}

func child[K comparable](of map[K]*node, key K) *node {
	if of[key] == nil {
		of[key] = &node{}
	}
	return of[key]
}
