package config

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// decoder turns nodes into a Config and collects what is wrong with them.
type decoder struct {
	env      func(string) (string, bool)
	origin   origin
	problems *Problems
	settled  map[string]bool // paths that have a problem already
	expanded int             // how often an alias or a merge was followed
}

func (d *decoder) mismatch(path string, n *yaml.Node, want string) {
	line := d.origin.line(path) // that of the key: the value may begin below it
	if line == 0 && n != nil {
		line = n.Line
	}
	d.add(Problem{path, line, fmt.Sprintf("want %s, have %s", want, describeNode(n))})
}

func (d *decoder) problem(path, text string) { d.add(Problem{path, d.origin.line(path), text}) }

func (d *decoder) add(p Problem) {
	d.settled[p.Path] = true
	d.problems.add(p)
}
