package typed

import "encoding/json"

// Form is a language of schemas, with the encoding of values that belongs to it.
type Form string

// The forms, as the configuration names them.
const (
	Avro Form = "avro"       // Avro 1.12, binary encoding
	JSON Form = "jsonschema" // JSON Schema, draft 7; values are JSON
)

// FormOf is the form of a schema's text.
func FormOf(schema []byte) Form {
	var is struct {
		Dialect json.RawMessage `json:"$schema"`
	}
	if json.Unmarshal(schema, &is) == nil && is.Dialect != nil {
		return JSON
	}
	return Avro
}

// Appender appends an object in one encoding to dst, in another. It is for one goroutine.
type Appender interface {
	Append(dst, object []byte) ([]byte, error)
}

// Schema is the schema of objects of the type, a record, that have their rest with them.
func (f Form) Schema(t *Type) []byte {
	if f == JSON {
		return t.closedSchema()
	}
	return t.Avro()
}

// Parse is the type whose schema the text is, as Schema makes it or a registry spells it again. It returns ErrOther for
// any other schema.
func (f Form) Parse(schema []byte) (*Type, error) {
	if f == JSON {
		return parseClosed(schema)
	}
	return ParseAvro(schema)
}

// Encoder makes values of objects of the type.
func (f Form) Encoder(t *Type) Appender {
	if f == JSON {
		return NewJSONEncoder(t)
	}
	return NewEncoder(t)
}

// Decoder makes objects of values of the type again.
func (f Form) Decoder(t *Type) Appender {
	if f == JSON {
		return NewJSONDecoder(t)
	}
	return NewDecoder(t)
}
