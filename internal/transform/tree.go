package transform

import "fmt"

// rule is a set of kinds of rules.
type rule uint8

const (
	drop rule = 1 << iota
	keep
	redact
)

// node is a place in the tree of all paths.
type node struct {
	fields   map[string]*node
	elements map[int]*node
	any      *node
	ends     rule // of the paths that end here
	leads    rule // of the paths that go on
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
	return child(n.fields, p.field)
}

func child[K comparable](of map[K]*node, key K) *node {
	if of[key] == nil {
		of[key] = &node{}
	}
	return of[key]
}
