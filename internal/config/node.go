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

// maxExpanded bounds how often aliases and merges are followed, since each may double what is read.
const maxExpanded = 10000

// pair is one key of a mapping, with its value.
type pair struct{ key, value *yaml.Node }

// present is the node, or that which an alias stands for; nil is null.
func (d *decoder) present(path string, n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		if n = d.follow(path, n.Alias); n == nil {
			return nil
		}
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return nil
	}
	return n
}

// follow counts, so that a few lines cannot stand for more than memory holds, nor an alias for itself.
func (d *decoder) follow(path string, n *yaml.Node) *yaml.Node {
	if d.expanded++; d.expanded <= maxExpanded {
		return n
	}
	if d.expanded == maxExpanded+1 {
		d.problem(path, "too many aliases; an anchor may stand for itself")
	}
	return nil
}

// pairs are the keys of a mapping and, after them, those that it merges (<<) and does not have itself.
func (d *decoder) pairs(path string, n *yaml.Node) []pair {
	var own, merged []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		f := pair{n.Content[i], n.Content[i+1]}
		if f.key.ShortTag() != "!!merge" {
			own = append(own, f)
			continue
		}
		for _, from := range d.mergedFrom(path, f.value) {
			merged = append(merged, d.pairs(path, from)...)
		}
	}
	has := map[string]bool{}
	for _, f := range own {
		has[nameOf(f.key)] = true
	}
	for _, f := range merged {
		if name := nameOf(f.key); !has[name] {
			own, has[name] = append(own, f), true
		}
	}
	return own
}

// mergedFrom are the mappings that a merge key names: one, or a list of them.
func (d *decoder) mergedFrom(path string, n *yaml.Node) []*yaml.Node {
	var all []*yaml.Node
	n = d.follow(path, n)
	if n = d.presentOrNil(path, n); n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		n = &yaml.Node{Kind: yaml.SequenceNode, Line: n.Line, Content: []*yaml.Node{n}}
	}
	for _, one := range n.Content {
		one = d.presentOrNil(path, d.follow(path, one))
		if one == nil || one.Kind != yaml.MappingNode {
			d.add(Problem{path, n.Line, "<< wants a mapping, or a list of mappings"})
			return nil
		}
		all = append(all, one)
	}
	return all
}

func (d *decoder) presentOrNil(path string, n *yaml.Node) *yaml.Node {
	if n == nil {
		return nil
	}
	return d.present(path, n)
}

// nameOf is the node as a key.
func nameOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.AliasNode && n.Alias.Kind == yaml.ScalarNode:
		return n.Alias.Value
	case n.Kind != yaml.ScalarNode:
		return describeNode(n)
	case n.ShortTag() == "!!null":
		return "null"
	}
	return n.Value
}
