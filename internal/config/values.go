package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

const unlimited = math.MaxInt

// mapping gives each value of a mapping to its key's reader. A null is a mapping without keys.
func (d *decoder) mapping(path string, n *node, keys map[string]reader) {
	if n == nil {
		return
	}
	if n.kind != mapping {
		d.mismatch(path, n, "a mapping with keys of "+list(slices.Collect(maps.Keys(keys))))
		for key := range keys {
			d.settled[under(path, key)] = true
		}
		return
	}
	first := make(map[string]int)
	for _, f := range n.fields {
		name, at := f.key.name(), f.key.at()
		p := under(path, name)
		if line, twice := first[name]; twice {
			d.add(Problem{p, at, fmt.Sprintf("key given twice, first on line %d; leave one out", line)})
			continue
		}
		first[name], d.origin.lines[p] = at, at
		if read := keys[name]; read != nil {
			read(p, f.value)
		} else {
			d.unknown(path, f, slices.Collect(maps.Keys(keys)))
		}
	}
}

func (d *decoder) unknown(path string, f field, allowed []string) {
	text := "unknown key; "
	if near := closest(f.key.name(), allowed); near != "" {
		text += "did you mean " + near + "? "
	}
	d.problem(under(path, f.key.name()), text+"allowed: "+list(allowed))
	if f.value != nil && f.value.kind == mapping {
		// It was meant as one of the allowed ones, which is then not missed as well.
		d.settled[path] = true
	}
}

// items are the values of a list.
func (d *decoder) items(path string, n *node) []*node {
	if n == nil {
		return nil
	}
	if n.kind != sequence {
		d.mismatch(path, n, "a list")
		return nil
	}
	for i, node := range n.items {
		if node != nil {
			d.origin.lines[item(path, i)] = node.line
		}
	}
	return n.items
}

// required reads an item of a list. A key may be left without a value, for its default; an item has none.
func (d *decoder) required(path string, n *node, read reader) {
	if n == nil {
		d.mismatch(path, n, "a value")
		return
	}
	read(path, n)
}

// listOf reads each item of a list into its place, also where one before it could not be read: paths count them all.
func listOf[T any](d *decoder, into *[]T, read func(path string, n *node, into *T)) reader {
	return func(path string, n *node) {
		nodes := d.items(path, n)
		if len(nodes) == 0 {
			return
		}
		*into = make([]T, len(nodes))
		for i, node := range nodes {
			read(item(path, i), node, &(*into)[i])
		}
	}
}

func (d *decoder) texts(into *[]string) reader {
	return listOf(d, into, func(path string, n *node, into *string) { d.required(path, n, d.text(into)) })
}

func (d *decoder) text(into *string) reader {
	return func(path string, n *node) {
		switch {
		case n == nil:
		case n.kind != scalar:
			d.mismatch(path, n, "a string")
		case !n.isString():
			d.problem(path, fmt.Sprintf("want a string, have %s; put it in quotes", n.describe()))
		default:
			d.expanded(path, n, into)
		}
	}
}

// secret reads as text does, but shows nothing of what it does not like.
func (d *decoder) secret(into *Secret) reader {
	return func(path string, n *node) {
		if n != nil && (n.kind != scalar || !n.isString()) {
			d.problem(path, "want a string; put it in quotes")
			return
		}
		d.text((*string)(into))(path, n)
	}
}

// dictionary reads a mapping with any keys. A value may be a number or true as well: settings of others are.
func (d *decoder) dictionary(into *map[string]string) reader {
	return func(path string, n *node) {
		if n == nil {
			return
		}
		if n.kind != mapping {
			d.mismatch(path, n, "a mapping")
			return
		}
		all := map[string]string{}
		keys := map[string]reader{}
		for _, f := range n.fields {
			name := f.key.name()
			keys[name] = func(path string, n *node) {
				var text string
				if d.scalar(path, n, "a string", &text) {
					all[name] = text
				}
			}
		}
		d.mapping(path, n, keys)
		*into = all
	}
}

func (d *decoder) size(into *Size, least Size) reader {
	return func(path string, n *node) {
		var text string
		if !d.scalar(path, n, "a size such as 64Mi", &text) {
			return
		}
		switch size, err := ParseSize(text); {
		case err != nil:
			d.mismatch(path, n, "a size such as 64Mi")
		case size < least:
			d.mismatch(path, n, fmt.Sprintf("a size of at least %s", least))
		default:
			*into = size
		}
	}
}

func (d *decoder) count(into *int, least, most int) reader {
	want := fmt.Sprintf("a whole number from %d to %d", least, most)
	if most == unlimited {
		want = fmt.Sprintf("a whole number, at least %d", least)
	}
	return func(path string, n *node) {
		var text string
		if !d.scalar(path, n, want, &text) {
			return
		}
		number, err := strconv.Atoi(text)
		if err != nil || number < least || number > most {
			d.mismatch(path, n, want)
			return
		}
		*into = number
	}
}

func (d *decoder) duration(into *Duration) reader {
	const want = "a length of time such as 10h or 1h30m"
	return func(path string, n *node) {
		var text string
		if !d.scalar(path, n, want, &text) {
			return
		}
		duration, err := ParseDuration(text)
		if err != nil {
			d.mismatch(path, n, want)
			return
		}
		*into = duration
	}
}

func (d *decoder) boolean(into *bool) reader {
	return func(path string, n *node) {
		var text string
		if !d.scalar(path, n, "true or false", &text) {
			return
		}
		if text != "true" && text != "false" {
			d.mismatch(path, n, "true or false")
			return
		}
		*into = text == "true"
	}
}

// scalar gets the text of a scalar of any type; a quoted number is one, too, so that it may come from a variable. It
// is false where there is nothing to read on.
func (d *decoder) scalar(path string, n *node, want string, into *string) bool {
	if n == nil {
		return false
	}
	if n.kind != scalar {
		d.mismatch(path, n, want)
		return false
	}
	return d.expanded(path, n, into)
}

func (d *decoder) expanded(path string, n *node, into *string) bool {
	if !n.isString() {
		*into = n.text
		return true
	}
	text, err := expand(n.text, d.env)
	if err != nil {
		d.problem(path, err.Error())
		return false
	}
	*into = text
	return true
}

func (d *decoder) mismatch(path string, n *node, want string) {
	d.add(Problem{path, d.lineOf(path, n), fmt.Sprintf("want %s, have %s", want, n.describe())})
}

func (d *decoder) problem(path, text string) {
	d.add(Problem{path, d.origin.line(path), text})
}

func (d *decoder) add(p Problem) {
	d.settled[p.Path] = true
	d.problems.add(p)
}

// lineOf prefers the line of the path, which is that of the key: the value may begin below it.
func (d *decoder) lineOf(path string, n *node) int {
	if line := d.origin.line(path); line != 0 {
		return line
	}
	return n.at()
}
