package config

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// mapping gives each value of a mapping to its key. A null is a mapping without keys.
func (d *decoder) mapping(path string, n *yaml.Node, keys []key) {
	if n == nil {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.mismatch(path, n, "a mapping with keys of "+join(names(keys)))
		for _, k := range keys {
			d.settled[under(path, k.name)] = true
		}
		return
	}
	first := make(map[string]int)
	for _, f := range d.fields(path, n) {
		name, at := nameOf(f.key), f.key.Line
		p := under(path, name)
		if line, twice := first[name]; twice {
			d.add(Problem{p, at, fmt.Sprintf("key given twice, first on line %d; leave one out", line)})
			continue
		}
		first[name], d.origin.lines[p] = at, at
		if i := slices.IndexFunc(keys, func(k key) bool { return k.name == name }); i >= 0 {
			keys[i].value.read(d, p, d.present(p, f.value))
		} else {
			d.unknown(path, f, names(keys))
		}
	}
}

func (d *decoder) unknown(path string, f field, allowed []string) {
	text := "unknown key; "
	if near := Closest(nameOf(f.key), allowed); near != "" {
		text += "did you mean " + near + "? "
	}
	d.problem(under(path, nameOf(f.key)), text+"allowed: "+join(allowed))
	if f.value.Kind == yaml.MappingNode {
		// It was meant as one of the allowed ones, which is then not missed as well.
		d.settled[path] = true
	}
}

// items are the values of a list.
func (d *decoder) items(path string, n *yaml.Node) []*yaml.Node {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		d.mismatch(path, n, "a list")
		return nil
	}
	items := make([]*yaml.Node, len(n.Content))
	for i, one := range n.Content {
		if items[i] = d.present(item(path, i), one); items[i] != nil {
			d.origin.lines[item(path, i)] = one.Line
		}
	}
	return items
}

// required reads an item of a list. A key may be left without a value, for its default; an item has none.
func (d *decoder) required(path string, n *yaml.Node, into value) {
	if n == nil {
		d.mismatch(path, n, "a value")
		return
	}
	into.read(d, path, n)
}

// word gets the text of a scalar. Where it need not be a plain string, a quoted number is one, too, so that it may come
// from a variable. It is false where there is nothing to read on.
func (d *decoder) word(path string, n *yaml.Node, want string, plain bool, into *string) bool {
	switch {
	case n == nil:
		return false
	case n.Kind != yaml.ScalarNode:
		d.mismatch(path, n, want)
		return false
	case !isString(n) && plain:
		d.problem(path, fmt.Sprintf("want a string, have %s; put it in quotes", describeNode(n)))
		return false
	case !isString(n):
		*into = n.Value
		return true
	}
	text, err := expand(n.Value, d.env)
	if err != nil {
		d.problem(path, err.Error())
		return false
	}
	*into = text
	return true
}
