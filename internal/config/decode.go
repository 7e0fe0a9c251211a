package config

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

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
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name, at := nameOf(key), key.Line
		p := under(path, name)
		if line, twice := first[name]; twice {
			d.add(Problem{p, at, fmt.Sprintf("key given twice, first on line %d; leave one out", line)})
			continue
		}
		first[name], d.origin.lines[p] = at, at
		switch {
		case key.ShortTag() == "!!merge":
			d.refuse(p, "keys are not merged; repeat them here")
		case names == nil || slices.Contains(names, name):
			read(name, p, d.present(p, value))
		default:
			d.unknown(path, name, value, names)
		}
	}
}

func (d *decoder) unknown(path, name string, value *yaml.Node, allowed []string) {
	text := "unknown key; "
	if near := Closest(name, slices.Sorted(slices.Values(allowed))); near != "" {
		text += "did you mean " + near + "? "
	}
	d.refuse(under(path, name), text+"allowed: "+join(allowed))
	if value.Kind == yaml.MappingNode {
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
	if n == nil {
		return
	}
	if n.Kind != yaml.SequenceNode {
		d.mismatch(path, n, "a list")
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(n.Content), len(n.Content))) // not nil, also where it is empty
	for i, one := range n.Content {
		at := item(path, i)
		node := d.present(at, one)
		if node != nil {
			d.origin.lines[at] = one.Line
		}
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

// required reads an item of a list. A key may be left without a value, for its default; an item has none.
func (d *decoder) required(path string, n *yaml.Node, into *string) {
	if n == nil {
		d.mismatch(path, n, "a value")
		return
	}
	if text, ok := d.word(path, n, "a string", true); ok {
		*into = text
	}
}

// dictionary is a mapping with any keys. Its values may be numbers and booleans as well: settings of others are.
func (d *decoder) dictionary(path string, n *yaml.Node, into *map[string]string) {
	all := map[string]string{}
	d.mapping(path, n, nil, func(name, path string, n *yaml.Node) {
		if text, ok := d.word(path, n, "a string", false); ok {
			all[name] = text
		}
	})
	if n.Kind == yaml.MappingNode {
		*into = all
	}
}

// scalar reads one word. Of a secret it shows nothing that it does not like.
func (d *decoder) scalar(path string, n *yaml.Node, s *scalar, into reflect.Value) {
	if s.hidden && n != nil && !isString(n) {
		d.refuse(path, "want a string; put it in quotes")
		return
	}
	switch text, ok := d.word(path, n, s.want, s.plain); {
	case !ok:
	case set(into, text) != nil:
		d.mismatch(path, n, s.want)
		into.SetZero()
	case !s.within(into):
		d.mismatch(path, n, s.bound)
		into.SetZero()
	}
}

// word gets the text of a scalar. Where it need not be a plain string, a quoted number is one, too, so that it may come
// from a variable. It is false where there is nothing to read on.
func (d *decoder) word(path string, n *yaml.Node, want string, plain bool) (text string, ok bool) {
	switch {
	case n == nil:
		return "", false
	case n.Kind != yaml.ScalarNode:
		d.mismatch(path, n, want)
		return "", false
	case !isString(n) && plain:
		d.refuse(path, fmt.Sprintf("want a string, have %s; put it in quotes", describeNode(n)))
		return "", false
	case !isString(n):
		return n.Value, true
	}
	text, err := expand(n.Value, d.env)
	if err != nil {
		d.refuse(path, err.Error())
	}
	return text, err == nil
}

// decoder turns nodes into a Config and collects what is wrong with them.
type decoder struct {
	*checker
	env      func(string) (string, bool)
	expanded int // how often an alias was followed
}

func (d *decoder) mismatch(path string, n *yaml.Node, want string) {
	line := d.origin.line(path) // that of the key: the value may begin below it
	if line == 0 && n != nil {
		line = n.Line
	}
	d.add(Problem{path, line, fmt.Sprintf("want %s, have %s", want, describeNode(n))})
}

func (d *decoder) refuse(path, text string) { d.add(Problem{path, d.origin.line(path), text}) }

func (d *decoder) add(p Problem) {
	d.settled[p.Path] = true
	d.found = append(d.found, p)
}

// maxExpanded bounds how often aliases are followed, since each may double what is read, or stand for itself.
const maxExpanded = 10000

// present is the node, or that which an alias stands for; nil is null, or none.
func (d *decoder) present(path string, n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		if d.expanded++; d.expanded == maxExpanded {
			d.refuse(path, "too many aliases; an anchor may stand for itself")
		}
		if n = n.Alias; d.expanded >= maxExpanded {
			return nil
		}
	}
	if n == nil || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return nil
	}
	return n
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

// expand replaces each ${NAME} in text by what env says, and $${ by ${. What it puts in is not looked at again.
func expand(text string, env func(string) (string, bool)) (string, error) {
	var failed error
	expanded := regexp.MustCompile(`\$\$\{|\$\{[^}]*}?`).ReplaceAllStringFunc(text, func(found string) string {
		if found == "$${" {
			return "${"
		}
		value, err := lookUp(found, env)
		failed = cmp.Or(failed, err)
		return value
	})
	return expanded, failed
}

// lookUp returns the value of the variable that ${NAME} names. Its errors show no more than a variable's name: the rest
// may be a secret.
func lookUp(reference string, env func(string) (string, bool)) (string, error) {
	name, closed := strings.CutSuffix(reference[len("${"):], "}")
	switch {
	case !closed:
		return "", fmt.Errorf("${ without a closing }; write $${ for a plain ${")
	case !consistsOf(name, lower+upper+digits+"_") || strings.Contains(digits, name[:1]):
		return "", fmt.Errorf("${...} holds more than the name of a variable; write $${ for a plain ${")
	}
	value, found := env(name)
	if !found {
		return "", fmt.Errorf("environment variable %s is not set; set it, or write $${%s} for the plain text", name, name)
	}
	return value, nil
}
