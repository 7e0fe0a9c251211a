package typed

import (
	"encoding/json"
	"fmt"
)

// The versions of JSON Schema that the schemas are written in: those of objects as those of package schema, and those
// of a registry in one whose rules of compatibility registries know.
const (
	dialect       = "https://json-schema.org/draft/2020-12/schema"
	closedDialect = "http://json-schema.org/draft-07/schema#"
)

// JSONSchema describes objects of the type, a record, as JSON. Further fields are allowed, and null is wherever a
// server may write it.
func (t *Type) JSONSchema(title string) ([]byte, error) {
	w := schemaWriter{defs: map[string]any{}, at: "$defs"}
	root := w.record(t, false)
	root["type"] = "object"
	root["$schema"], root["title"] = dialect, title
	return w.end(root)
}

// closedSchema describes what a JSONEncoder makes of objects of the type, a record: nothing is allowed but what it has,
// so that what comes later is compatible. The title is the type's name.
func (t *Type) closedSchema() []byte {
	w := schemaWriter{defs: map[string]any{}, at: "definitions", closed: true}
	root := w.record(t, true)
	root["$schema"], root["title"] = closedDialect, t.Name
	text, _ := w.end(root) // maps of texts, which are always written
	return text
}

type schemaWriter struct {
	defs   map[string]any
	at     string // where the records are
	closed bool
}

func (w *schemaWriter) end(root map[string]any) ([]byte, error) {
	if len(w.defs) > 0 {
		root[w.at] = w.defs
	}
	text, err := json.Marshal(root)
	if err != nil {
		return nil, fmt.Errorf("write a JSON Schema: %w", err)
	}
	return ascii(text), nil
}

func (w *schemaWriter) record(t *Type, rest bool) map[string]any {
	properties := map[string]any{}
	for i := range t.Fields {
		if f := &t.Fields[i]; !w.closed || f.JSON != RestName {
			properties[f.JSON] = w.value(f.Type)
		}
	}
	made := map[string]any{"type": w.orNull("object"), "properties": properties}
	if !w.closed {
		return made
	}
	if made["additionalProperties"] = false; rest {
		properties[RestName] = w.typed("object")
	}
	return made
}

// orNull are the types that a value may have. What is null is in the rest of closed objects.
func (w *schemaWriter) orNull(types ...string) any {
	switch {
	case !w.closed:
		return append(types, "null")
	case len(types) == 1:
		return types[0]
	}
	return types
}

func (w *schemaWriter) typed(types ...string) map[string]any {
	return map[string]any{"type": w.orNull(types...)}
}

func (w *schemaWriter) value(t *Type) any {
	switch t.Kind {
	case Record:
		return w.ref(t)
	case List:
		made := w.typed("array")
		made["items"] = w.element(t)
		return made
	case Map:
		made := w.typed("object")
		made["additionalProperties"] = w.element(t)
		return made
	case Time:
		made := w.typed("string")
		made["format"] = "date-time"
		return made
	}
	if types := schemaTypes()[t.Kind]; types != nil {
		return w.typed(types...)
	}
	return true
}

// schemaTypes are the types of the kinds that have no more to say.
func schemaTypes() map[Kind][]string {
	return map[Kind][]string{
		Bool: {"boolean"}, Long: {"integer"}, Double: {"number"}, String: {"string"}, Quantity: {"string", "number"},
		IntOrString: {"integer", "string"},
	}
}

func (w *schemaWriter) element(t *Type) any {
	if w.closed && t.Nullable && t.Elem.Kind != Text {
		return map[string]any{"oneOf": []any{map[string]any{"type": "null"}, w.value(t.Elem)}}
	}
	return w.value(t.Elem)
}

// ref refers to a record, which is written once.
func (w *schemaWriter) ref(t *Type) any {
	if _, written := w.defs[t.Name]; !written {
		w.defs[t.Name] = true // while it is being written
		w.defs[t.Name] = w.record(t, t.Rest)
	}
	return map[string]any{"$ref": "#/" + w.at + "/" + t.Name}
}
