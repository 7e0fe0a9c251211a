package config

import (
	"fmt"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"
)

// reader is a value that reads itself; n is nil where it is null.
type reader interface {
	read(d *decoder, path string, n *yaml.Node)
}

// section reads a mapping into a struct. A null is a mapping without keys.
func (d *decoder) section(path string, n *yaml.Node, into reflect.Value) {
	fields := fieldsOf(into.Type())
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].name
	}
	d.mapping(path, n, names, func(name, path string, n *yaml.Node) {
		f := &fields[slices.Index(names, name)]
		d.value(path, n, f, into.FieldByIndex(f.Index))
	})
	if more, is := into.Addr().Interface().(interface{ afterRead(*decoder, string) }); is {
		more.afterRead(d, path)
	}
}

// mapping gives each value of a mapping to its key, which is one of the names; nil is any.
func (d *decoder) mapping(path string, n *yaml.Node, names []string, read func(name, path string, n *yaml.Node)) {
	if n == nil {
		return
	}
	if n.Kind != yaml.MappingNode {
		want := "a mapping"
		if names != nil {
			want += " with keys of " + join(names)
		}
		d.mismatch(path, n, want)
		for _, name := range names {
			d.settled[under(path, name)] = true
		}
		return
	}
	first := make(map[string]int)
	for _, f := range d.pairs(path, n) {
		name, at := nameOf(f.key), f.key.Line
		p := under(path, name)
		if line, twice := first[name]; twice {
			d.add(Problem{p, at, fmt.Sprintf("key given twice, first on line %d; leave one out", line)})
			continue
		}
		first[name], d.origin.lines[p] = at, at
		if names == nil || slices.Contains(names, name) {
			read(name, p, d.present(p, f.value))
		} else {
			d.unknown(path, f, names)
		}
	}
}

func (d *decoder) unknown(path string, f pair, allowed []string) {
	text := "unknown key; "
	if near := Closest(nameOf(f.key), slices.Sorted(slices.Values(allowed))); near != "" {
		text += "did you mean " + near + "? "
	}
	d.problem(under(path, nameOf(f.key)), text+"allowed: "+join(allowed))
	if f.value.Kind == yaml.MappingNode {
		// It was meant as one of the allowed ones, which is then not missed as well.
		d.settled[path] = true
	}
}

// value reads what is after a key.
func (d *decoder) value(path string, n *yaml.Node, f *field, into reflect.Value) {
	if own, is := into.Addr().Interface().(reader); is {
		own.read(d, path, n)
		return
	}
	switch s, kind := f.scalar(), f.Type.Kind(); {
	case s != nil:
		d.scalar(path, n, s, into)
	case kind == reflect.Struct:
		d.section(path, n, into)
	case kind == reflect.Pointer: // it is there when its key is, also without a value
		into.Set(reflect.New(f.Type.Elem()))
		d.section(path, n, into.Elem())
	case kind == reflect.Slice:
		d.list(path, n, into)
	case n != nil:
		d.dictionary(path, n, into.Addr().Interface().(*map[string]string))
	}
}

// list reads each item of a list into its place, also where one before it could not be read: paths count them all.
func (d *decoder) list(path string, n *yaml.Node, into reflect.Value) {
	nodes := d.items(path, n)
	if len(nodes) == 0 {
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(nodes), len(nodes)))
	for i, node := range nodes {
		at := item(path, i)
		switch one := into.Index(i).Addr().Interface().(type) {
		case reader:
			one.read(d, at, node)
		case *string:
			d.required(at, node, one)
		default:
			d.section(at, node, into.Index(i))
		}
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
func (d *decoder) required(path string, n *yaml.Node, into *string) {
	if n == nil {
		d.mismatch(path, n, "a value")
		return
	}
	d.word(path, n, "a string", true, into)
}

// dictionary is a mapping with any keys. Its values may be numbers and booleans as well: settings of others are.
func (d *decoder) dictionary(path string, n *yaml.Node, into *map[string]string) {
	all := map[string]string{}
	d.mapping(path, n, nil, func(name, path string, n *yaml.Node) {
		var text string
		if d.word(path, n, "a string", false, &text) {
			all[name] = text
		}
	})
	if n.Kind == yaml.MappingNode {
		*into = all
	}
}

// scalar reads one word. Of a secret it shows nothing that it does not like.
func (d *decoder) scalar(path string, n *yaml.Node, s *scalar, into reflect.Value) {
	if s.kind == "secret" && n != nil && !isString(n) {
		d.problem(path, "want a string; put it in quotes")
		return
	}
	var text string
	if !d.word(path, n, s.want, s.plain, &text) {
		return
	}
	switch value, err := s.parse(text); {
	case err != nil:
		d.mismatch(path, n, s.want)
	case s.within != nil && !s.within(value):
		d.mismatch(path, n, s.bound)
	default:
		into.Set(reflect.ValueOf(value))
	}
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
