package typed

import (
	"encoding/json"
	"fmt"
)

// JSONSchema describes objects of the type, a record, as JSON. Further fields are allowed, and null is wherever a
// server may write it.
func (t *Type) JSONSchema(title string) ([]byte, error) {
	w := schemaWriter{}
	root := w.record(t)
	root["type"] = "object"
	root["$schema"], root["title"] = "https://json-schema.org/draft/2020-12/schema", title
	if len(w) > 0 {
		root["$defs"] = w
	}
	text, err := json.Marshal(root)
	if err != nil {
		return nil, fmt.Errorf("write a JSON Schema: %w", err)
	}
	return ascii(text), nil
}

// schemaWriter has the records within the outermost one, by their names.
type schemaWriter map[string]any

func (w schemaWriter) record(t *Type) map[string]any {
	properties := map[string]any{}
	for i := range t.Fields {
		properties[t.Fields[i].JSON] = w.value(t.Fields[i].Type)
	}
	return orNull("properties", properties, "object")
}

// orNull is a schema of the types and of null, with a keyword more.
func orNull(keyword string, says any, types ...string) map[string]any {
	made := map[string]any{"type": append(types, "null")}
	if keyword != "" {
		made[keyword] = says
	}
	return made
}

func (w schemaWriter) value(t *Type) any {
	switch t.Kind {
	case Bool:
		return orNull("", nil, "boolean")
	case Long:
		return orNull("", nil, "integer")
	case Double:
		return orNull("", nil, "number")
	case String:
		return orNull("", nil, "string")
	case Quantity:
		return orNull("", nil, "string", "number")
	case IntOrString:
		return orNull("", nil, "integer", "string")
	case Time:
		return orNull("format", "date-time", "string")
	case Record:
		return w.ref(t)
	case List:
		return orNull("items", w.value(t.Elem), "array")
	case Map:
		return orNull("additionalProperties", w.value(t.Elem), "object")
	}
	return true
}

// ref refers to a record, which is written once.
func (w schemaWriter) ref(t *Type) any {
	if _, written := w[t.Name]; !written {
		w[t.Name] = true // while it is being written
		w[t.Name] = w.record(t)
	}
	return map[string]any{"$ref": "#/$defs/" + t.Name}
}
