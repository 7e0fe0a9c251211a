package transform

import "fmt"

// Step is one part of a path: a field's name, one element of a list, or whatever there is.
type Step struct {
	Field string // "" in the other two
	Any   bool
}

// Steps are the parts of one path.
func Steps(path string) ([]Step, error) {
	root := &node{}
	if err := root.add(path); err != nil {
		return nil, fmt.Errorf("path %q: %w", path, err)
	}
	var steps []Step
	for n := root; !n.end; {
		var step Step
		n, step = n.only()
		steps = append(steps, step)
	}
	return steps, nil
}

// only is where the one path of a tree goes on.
func (n *node) only() (*node, Step) {
	for name, next := range n.fields {
		return next, Step{Field: name}
	}
	for _, next := range n.elements {
		return next, Step{}
	}
	return n.any, Step{Any: true}
}
