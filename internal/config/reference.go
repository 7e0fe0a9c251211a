package config

import (
	"embed"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed sentences.yaml
var assets embed.FS

// sentences is one of each key, in Markdown, by the type that has it. A test looks for them all.
func sentences() map[string]map[string]string {
	var all map[string]map[string]string
	if text, err := assets.ReadFile("sentences.yaml"); err == nil {
		_ = yaml.Unmarshal(text, &all)
	}
	return all
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

// describer describes the keys to people and to tools.
type describer struct{ sentences map[string]map[string]string }

func (d describer) keys(section string, t reflect.Type) []Key {
	var rows, sections []Key
	for _, f := range fieldsOf(t) {
		kind, _ := d.value(&f)
		row := Key{
			Path: under(section, f.name), Type: kind, Default: f.Tag.Get("default"), Allowed: f.allowed,
			Text: d.sentences[f.owner][f.name], Section: f.below() != nil,
		}
		if f.Type.Kind() == reflect.Bool {
			row.Default = "false"
		}
		if row.Section && f.Type.Kind() == reflect.Slice {
			row.Path += "[]"
		}
		rows = append(rows, row)
		if row.Section {
			sections = append(sections, d.keys(row.Path, f.below())...)
		}
	}
	return append(rows, sections...)
}

func (d describer) schema(t reflect.Type) Schema {
	properties := Schema{}
	for _, f := range fieldsOf(t) {
		_, property := d.value(&f)
		property["description"] = d.sentences[f.owner][f.name]
		properties[f.name] = property
	}
	return Schema{"type": "object", "additionalProperties": false, "properties": properties}
}

// described is a value that has a form of its own.
type described interface {
	described() (kind string, of Schema)
}

// value is what a user writes after the key, and its schema.
func (d describer) value(f *field) (kind string, of Schema) {
	if own, is := reflect.Zero(f.Type).Interface().(described); is {
		return own.described()
	}
	text := Schema{"type": "string"}
	if len(f.allowed) > 0 { // a variable may stand for any of them
		text["pattern"] = "^(" + strings.Join(f.allowed, "|") + `|.*\$\{.*)$`
	}
	s, below, shape := f.scalar(), f.below(), f.Type.Kind()
	switch {
	case s != nil && s.kind == "string":
		return s.kind, text
	case s != nil:
		of = Schema{"type": s.types}
		for name, value := range s.form {
			of[name] = value
		}
		return s.kind, of
	case below != nil && shape == reflect.Slice:
		of = d.schema(below)
		if reflect.PointerTo(below).Implements(reflect.TypeFor[reader]()) { // an item may be a name alone
			of = Schema{"anyOf": []any{Schema{"type": "string", "minLength": 1}, of}}
		}
		return "list", Schema{"type": "array", "items": of}
	case below != nil:
		if of = d.schema(below); shape == reflect.Pointer {
			of["type"] = []string{"object", "null"}
		}
		return "mapping", of
	case shape == reflect.Slice:
		return "list of strings", Schema{"type": "array", "items": text}
	}
	return "mapping of strings", Schema{"type": "object", "additionalProperties": Schema{"type": []string{"string", "number", "boolean"}}}
}
