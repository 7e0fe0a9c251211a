package typed

import (
	"encoding/json"
	"fmt"
)

// dialect is the version of JSON Schema that the schemas are written in, as those of package schema.
const dialect = "https://json-schema.org/draft/2020-12/schema"

// JSONSchema describes objects of the type, a record, as JSON. Further fields are allowed, and null is wherever a
// server may write it.
func (t *Type) JSONSchema(title string) ([]byte, error) {
	w := schemaWriter{defs: map[string]any{}}
	root := w.record(t)
	root["type"] = "object"
	root["$schema"], root["title"] = dialect, title
	if len(w.defs) > 0 {
		root["$defs"] = w.defs
	}
	text, err := json.Marshal(root)
	if err != nil {
		return nil, fmt.Errorf("write a JSON Schema: %w", err)
	}
	return ascii(text), nil
}

type schemaWriter struct{ defs map[string]any }

func (w *schemaWriter) record(t *Type) map[string]any {
	properties := map[string]any{}
	for i := range t.Fields {
		properties[t.Fields[i].JSON] = w.value(t.Fields[i].Type)
	}
	return map[string]any{"type": orNull("object"), "properties": properties}
}

func orNull(types ...string) []string { return append(types, "null") }

func (w *schemaWriter) value(t *Type) any {
	switch t.Kind {
	case Record:
		return w.ref(t)
	case List:
		return map[string]any{"type": orNull("array"), "items": w.value(t.Elem)}
	case Map:
		return map[string]any{"type": orNull("object"), "additionalProperties": w.value(t.Elem)}
	case Time:
		return map[string]any{"type": orNull("string"), "format": "date-time"}
	}
	if types := map[Kind][]string{
		Bool: {"boolean"}, Long: {"integer"}, Double: {"number"}, String: {"string"}, Quantity: {"string", "number"},
		IntOrString: {"integer", "string"},
	}[t.Kind]; types != nil {
		return map[string]any{"type": orNull(types...)}
	}
	return true
}

// ref refers to a record, which is written once.
func (w *schemaWriter) ref(t *Type) any {
	if _, written := w.defs[t.Name]; !written {
		w.defs[t.Name] = true // while it is being written
		w.defs[t.Name] = w.record(t)
	}
	return map[string]any{"$ref": "#/$defs/" + t.Name}
}
