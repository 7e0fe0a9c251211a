package reference

import (
	_ "embed"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubecdc/kubecdc/internal/config"
)

//go:embed sentences.yaml
var sentencesText []byte

// sentences is one of each key, in Markdown, by the type that has it. A test looks for them all.
func sentences() map[string]map[string]string {
	var all map[string]map[string]string
	if err := yaml.Unmarshal(sentencesText, &all); err != nil {
		return nil
	}
	return all
}

// Key is one key of a configuration, as the reference has it.
type Key struct {
	Path    string // "sinks[].kafka.topic"
	Owner   string // the type that declares it, which several sections may have
	Type    string
	Default string // "" is none, for which Text says what it means that the key is not there
	Allowed []string
	Text    string // Markdown
	Section bool   // has keys below it
}

// Schema is a JSON Schema.
type Schema = map[string]any

// Keys are all keys of a configuration, those of a section after the section that it stands in.
func Keys() []Key { return describer{sentences()}.keys("", reflect.TypeFor[config.Config]()) }

// JSONSchema describes a configuration to tools that check one before the exporter does. It refuses nothing that
// config.Parse takes: any text may hold a ${VARIABLE}.
func JSONSchema() Schema { return describer{sentences()}.schema(reflect.TypeFor[config.Config]()) }

// field is a key of a mapping, as package config declares it.
type field struct {
	reflect.StructField
	name    string
	owner   string // the type that has it, perhaps within another one
	allowed []string
}

// fieldsOf are the keys of a struct, in their order.
func fieldsOf(t reflect.Type) (all []field) {
	for _, f := range reflect.VisibleFields(t) {
		owner := t
		if outer := f.Index[:len(f.Index)-1]; len(outer) > 0 {
			owner = t.FieldByIndex(outer).Type
		}
		if name := f.Tag.Get("key"); name != "" {
			all = append(all, field{f, name, owner.Name(), strings.Fields(f.Tag.Get("of"))})
		}
	}
	return all
}

// below is the type of the mappings after the key, nil where they have no keys.
func (f *field) below() reflect.Type {
	t := f.Type
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || len(fieldsOf(t)) == 0 {
		return nil
	}
	return t
}

// describer describes the keys to people and to tools.
type describer struct{ sentences map[string]map[string]string }

func (d describer) keys(section string, t reflect.Type) []Key {
	var rows, sections []Key
	for _, f := range fieldsOf(t) {
		kind, _ := d.value(&f)
		path := f.name
		if section != "" {
			path = section + "." + f.name
		}
		row := Key{
			Path: path, Owner: f.owner, Type: kind, Default: f.Tag.Get("default"), Allowed: f.allowed, Text: d.sentences[f.owner][f.name], Section: f.below() != nil,
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

// value is what a user writes after the key, and its schema.
func (d describer) value(f *field) (kind string, of Schema) {
	text := Schema{"type": "string"}
	if len(f.allowed) > 0 { // a variable may stand for any of them
		text["pattern"] = "^(" + strings.Join(f.allowed, "|") + `|.*\$\{.*)$`
	}
	switch reflect.Zero(f.Type).Interface().(type) {
	case config.Redaction:
		paths := Schema{"type": "array", "items": Schema{"type": "string"}}
		return "strings, or `none`", Schema{"anyOf": []any{Schema{"const": "none"}, paths}}
	case string:
		return "string", text
	case config.Secret:
		return "secret", Schema{"type": "string"}
	case bool, *bool:
		return "boolean", Schema{"type": []string{"boolean", "string"}}
	case int:
		return "number", Schema{"type": []string{"integer", "string"}}
	case config.Size:
		least, _ := resource.ParseQuantity(f.Tag.Get("min")) // no tag is 0
		return "size", Schema{
			"type": []string{"integer", "string"}, "minimum": least.Value(), "pattern": `^([0-9]+(Ki|Mi|Gi|Ti|k|M|G|T)?|.*\$\{.*)$`,
		}
	case config.Duration: // a number without a unit is 0
		return "duration", Schema{
			"type": []string{"string", "integer"}, "minimum": 0, "maximum": 0,
			"pattern": `^(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+|.*\$\{.*)$`,
		}
	}
	switch below, shape := f.below(), f.Type.Kind(); {
	case below != nil && shape == reflect.Slice:
		of = d.schema(below)
		if below == reflect.TypeFor[config.Resource]() { // an item may be a name alone
			of = Schema{"anyOf": []any{Schema{"type": "string", "minLength": 1}, of}}
		}
		return "list", Schema{"type": "array", "items": of}
	case below != nil:
		if of = d.schema(below); shape == reflect.Pointer {
			of["type"] = []string{"object", "null"}
		}
		return "mapping", of
	case shape == reflect.Slice:
		return "strings", Schema{"type": "array", "items": text}
	}
	return "mapping of strings", Schema{"type": "object", "additionalProperties": Schema{"type": []string{"string", "number", "boolean"}}}
}
