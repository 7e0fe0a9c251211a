package transform

import (
	"fmt"
	"strconv"
	"strings"
)

// node is a place in the tree of all paths of one kind of rule.
type node struct {
	fields   map[string]*node
	elements map[int]*node
	any      *node // [*] and .*
	end      bool  // a path ends here
}

// start is the set of nodes that the root of an object is at.
func (n *node) start() []*node {
	if n == nil {
		return nil
	}
	return []*node{n}
}

// field is where a set of nodes gets by an object's key, and whether a path ends there.
func field(at []*node, key []byte) (next []*node, end bool) {
	for _, n := range at {
		next, end = follow(next, end, n.fields[string(key)])
		next, end = follow(next, end, n.any)
	}
	return next, end
}

// element is where a set of nodes gets by a list's index, and whether a path ends there.
func element(at []*node, index int) (next []*node, end bool) {
	for _, n := range at {
		next, end = follow(next, end, n.elements[index])
		next, end = follow(next, end, n.any)
	}
	return next, end
}

func follow(next []*node, end bool, n *node) ([]*node, bool) {
	if n == nil {
		return next, end
	}
	return append(next, n), end || n.end
}

// parsePaths makes one tree of the paths; nil of none.
func parsePaths(rule string, paths []string) (*node, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	root := &node{}
	for _, text := range paths {
		if err := root.add(text); err != nil {
			return nil, fmt.Errorf("%s path %q: %w", rule, text, err)
		}
	}
	return root, nil
}

func (n *node) add(text string) error {
	rest := text
	if inner, braced := strings.CutPrefix(text, "{"); braced {
		var closed bool
		if rest, closed = strings.CutSuffix(inner, "}"); !closed {
			return fmt.Errorf("a { without its }")
		}
	}
	rest = strings.TrimPrefix(rest, "$")
	if rest == "" || rest == "." {
		return fmt.Errorf("it names the whole object; want a field, such as .spec.replicas")
	}
	for rest != "" {
		var err error
		if n, rest, err = n.step(rest); err != nil {
			return err
		}
	}
	n.end = true
	return nil
}

// step takes the path's next part.
func (n *node) step(text string) (next *node, rest string, err error) {
	if text[0] == '[' {
		return n.bracket(text[1:])
	}
	text = strings.TrimPrefix(text, ".")
	end := strings.IndexAny(text, ".[")
	if end < 0 {
		end = len(text)
	}
	name, rest := text[:end], text[end:]
	switch {
	case name == "":
		return nil, "", fmt.Errorf("a part is empty; .. is not supported")
	case name == "*":
		return n.anything(), rest, nil
	case strings.ContainsAny(name, " ]{}()'\"?@"):
		return nil, "", fmt.Errorf("%q is not a field; write a name with special characters as ['name']", name)
	}
	return n.fieldNode(name), rest, nil
}

// bracket takes what stands behind a [.
func (n *node) bracket(text string) (next *node, rest string, err error) {
	if quote := text[:min(1, len(text))]; quote == "'" || quote == `"` {
		name, rest, closed := strings.Cut(text[1:], quote+"]")
		if !closed || name == "" {
			return nil, "", fmt.Errorf("a [%s without its %s], or nothing between", quote, quote)
		}
		return n.fieldNode(name), rest, nil
	}
	inner, rest, closed := strings.Cut(text, "]")
	if !closed {
		return nil, "", fmt.Errorf("a [ without its ]")
	}
	if inner == "*" {
		return n.anything(), rest, nil
	}
	index, err := strconv.Atoi(inner)
	if err != nil || index < 0 {
		return nil, "", fmt.Errorf("[%s] is not supported; allowed: [*], an index such as [0], a field such as ['a.b/c']", inner)
	}
	if n.elements == nil {
		n.elements = map[int]*node{}
	}
	if n.elements[index] == nil {
		n.elements[index] = &node{}
	}
	return n.elements[index], rest, nil
}

func (n *node) fieldNode(name string) *node {
	if n.fields == nil {
		n.fields = map[string]*node{}
	}
	if n.fields[name] == nil {
		n.fields[name] = &node{}
	}
	return n.fields[name]
}

func (n *node) anything() *node {
	if n.any == nil {
		n.any = &node{}
	}
	return n.any
}
