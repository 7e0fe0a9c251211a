package config

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// key is one key of a mapping. Everything that is known of it is declared here, once: decoding, defaults, checks, the
// reference and the JSON Schema all come from it.
type key struct {
	name  string
	value value
	// a sentence of the reference, in Markdown; it says what the key's absence means where there is no default
	about string
}

// keyed is a mapping whose keys are known.
type keyed interface{ keys() []key }

// value is what stands after a key. A function that is nil does nothing.
type value struct {
	kind     string   // what a user writes: "size", "list of strings"
	allowed  []string // nil is any
	fallback string   // as a user would write it; "" is none
	schema   Schema   // of JSON
	below    func() []key

	read   func(d *decoder, path string, n *yaml.Node) // n is nil where the value is null
	fillIn func()                                      // puts the default where nothing is set
	check  func(k *checker, path string)
	show   func() any // as JSON; nil where nothing is set
}

// then runs after the value was read.
func (v value) then(after func(d *decoder, path string)) value {
	read := v.read
	v.read = func(d *decoder, path string, n *yaml.Node) {
		read(d, path, n)
		after(d, path)
	}
	return v
}

func fillIn(keys []key) {
	for _, k := range keys {
		if k.value.fillIn != nil {
			k.value.fillIn()
		}
	}
}

func show(keys []key) map[string]any {
	shown := map[string]any{}
	for _, k := range keys {
		if value := k.value.show(); value != nil {
			shown[k.name] = value
		}
	}
	return shown
}

// Key is one key of a configuration, as the reference has it.
type Key struct {
	Path    string // "sinks[].kafka.topic"
	Type    string
	Default string // "" is none, for which Text says what it means that the key is not there
	Allowed []string
	Text    string // Markdown
	Section bool   // has keys below it
}

func describe(section string, keys []key) []Key {
	var rows, sections []Key
	for _, k := range keys {
		row := Key{
			Path: under(section, k.name), Type: k.value.kind, Default: k.value.fallback, Allowed: k.value.allowed,
			Text: k.about, Section: k.value.below != nil,
		}
		if row.Section && row.Type == "list" {
			row.Path += "[]"
		}
		rows = append(rows, row)
		if row.Section {
			sections = append(sections, describe(row.Path, k.value.below())...)
		}
	}
	return append(rows, sections...)
}

// Schema is a JSON Schema.
type Schema = map[string]any

func schemaOf(keys []key) Schema {
	properties := Schema{}
	for _, k := range keys {
		property := Schema{"description": k.about}
		for name, value := range k.value.schema {
			property[name] = value
		}
		properties[k.name] = property
	}
	return Schema{"type": "object", "additionalProperties": false, "properties": properties}
}

func (c *checker) keys(path string, keys []key) {
	for _, key := range keys {
		if key.value.check != nil {
			key.value.check(c, under(path, key.name))
		}
	}
}

func names(keys []key) []string {
	all := make([]string, len(keys))
	for i, k := range keys {
		all[i] = k.name
	}
	slices.Sort(all)
	return all
}
