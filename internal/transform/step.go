package transform

import "fmt"

// Step is one part of a path: a field's name, one element of a list, or whatever there is.
type Step struct {
	Field string // "" in the other two
	Any   bool
}

// Steps are the parts of one path.
func Steps(path string) ([]Step, error) {
	parts, err := parsePath(path)
	if err != nil {
		return nil, fmt.Errorf("path %q: %w", path, err)
	}
	var steps []Step
	for _, p := range parts {
		steps = append(steps, Step{Field: p.field, Any: p.kind == anything})
	}
	return steps, nil
}
