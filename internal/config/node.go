package config

import (
	"go.yaml.in/yaml/v3"
)

// maxExpanded bounds how often aliases and merges are followed, since each may double what is read.
const maxExpanded = 10000

// field is one key of a mapping, with its value.
type field struct{ key, value *yaml.Node }

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

// fields are the keys of a mapping and, after them, those that it merges (<<) and does not have itself.
func (d *decoder) fields(path string, n *yaml.Node) []field {
	var own, merged []field
	for i := 0; i+1 < len(n.Content); i += 2 {
		f := field{n.Content[i], n.Content[i+1]}
		if f.key.ShortTag() != "!!merge" {
			own = append(own, f)
			continue
		}
		for _, from := range d.mergedFrom(path, f.value) {
			merged = append(merged, d.fields(path, from)...)
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
