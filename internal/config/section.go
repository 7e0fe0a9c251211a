package config

import (
	"go.yaml.in/yaml/v3"
)

// section is a mapping that is always there.
func section(of keyed) value {
	return value{
		kind:   "mapping",
		schema: schemaOf(of.keys()),
		below:  of.keys,
		read:   func(d *decoder, path string, n *yaml.Node) { d.mapping(path, n, of.keys()) },
		fillIn: func() { fillIn(of.keys()) },
		check:  func(k *checker, path string) { k.keys(path, of.keys()) },
		show: func() any {
			if shown := show(of.keys()); len(shown) > 0 {
				return shown
			}
			return nil
		},
	}
}

// optional is a mapping that is there when its key is, also without a value.
func optional[T any, P interface {
	*T
	keyed
}](target **T) value {
	v := section(P(new(T)))
	if v.schema["type"] = []string{"object", "null"}; *target != nil {
		of := section(P(*target))
		v.fillIn, v.check = of.fillIn, of.check
		v.show = func() any { return show(P(*target).keys()) }
	} else {
		v.fillIn, v.check, v.show = nil, nil, func() any { return nil }
	}
	v.read = func(d *decoder, path string, n *yaml.Node) {
		*target = new(T)
		d.mapping(path, n, P(*target).keys())
	}
	return v
}

// entries is a list of mappings.
func entries[T any, P interface {
	*T
	keyed
}](target *[]T, read func(d *decoder, path string, n *yaml.Node, into *T)) value {
	each := func(visit func(index int, one P)) {
		for i := range *target {
			visit(i, &(*target)[i])
		}
	}
	return value{
		kind:   "list",
		schema: Schema{"type": "array", "items": schemaOf(P(new(T)).keys())},
		below:  P(new(T)).keys,
		read:   func(d *decoder, path string, n *yaml.Node) { readList(d, path, n, target, read) },
		fillIn: func() { each(func(_ int, one P) { fillIn(one.keys()) }) },
		check: func(k *checker, path string) {
			each(func(i int, one P) { k.keys(item(path, i), one.keys()) })
		},
		show: func() any {
			var shown []any
			each(func(_ int, one P) { shown = append(shown, show(one.keys())) })
			if shown == nil {
				return nil
			}
			return shown
		},
	}
}

// readList reads each item of a list into its place, also where one before it could not be read: paths count them all.
func readList[T any](d *decoder, path string, n *yaml.Node, target *[]T, read func(*decoder, string, *yaml.Node, *T)) {
	nodes := d.items(path, n)
	if len(nodes) == 0 {
		return
	}
	*target = make([]T, len(nodes))
	for i, node := range nodes {
		read(d, item(path, i), node, &(*target)[i])
	}
}

// list is a list of strings, of the allowed ones where there are some.
func list(target *[]string, allowed ...string) value {
	v := value{
		kind:    "list of strings",
		allowed: allowed,
		schema:  Schema{"type": "array", "items": Schema{"type": "string"}},
		read: func(d *decoder, path string, n *yaml.Node) {
			readList(d, path, n, target, func(d *decoder, path string, n *yaml.Node, into *string) {
				d.required(path, n, text(into))
			})
		},
		show: func() any {
			if len(*target) == 0 {
				return nil
			}
			return *target
		},
	}
	if len(allowed) > 0 {
		v.schema["items"] = restricted(allowed)
		v.check = func(k *checker, path string) {
			for i, one := range *target {
				k.oneOf(item(path, i), one, allowed)
			}
		}
	}
	return v
}

// dictionary is a mapping with any keys. Its values may be numbers and booleans as well: settings of others are.
func dictionary(target *map[string]string) value {
	return value{
		kind:   "mapping of strings",
		schema: Schema{"type": "object", "additionalProperties": Schema{"type": []string{"string", "number", "boolean"}}},
		read:   func(d *decoder, path string, n *yaml.Node) { d.dictionary(path, n, target) },
		show: func() any {
			if len(*target) == 0 {
				return nil
			}
			return *target
		},
	}
}

func (d *decoder) dictionary(path string, n *yaml.Node, target *map[string]string) {
	if n == nil {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.mismatch(path, n, "a mapping")
		return
	}
	all := map[string]string{}
	var keys []key
	for _, f := range d.fields(path, n) {
		name := nameOf(f.key)
		keys = append(keys, key{name: name, value: value{read: func(d *decoder, path string, n *yaml.Node) {
			var text string
			if d.word(path, n, "a string", false, &text) {
				all[name] = text
			}
		}}})
	}
	d.mapping(path, n, keys)
	*target = all
}
