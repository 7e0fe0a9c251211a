package typed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ErrOther is what ParseAvro says of schemas that Avro has not written.
var ErrOther = errors.New("it is no schema of kubecdc")

// ParseAvro is the type whose schema the text is, as Avro writes it or a registry spells it again: with namespaces
// apart from names, and other blanks. It returns ErrOther for any other schema.
func ParseAvro(text []byte) (*Type, error) {
	p := parser{records: map[string]*Type{}}
	t := p.value(text, "", 0)
	if p.err == nil && (t.Kind != Record || !t.Rest) {
		p.refuse("it is not a record with %s as its first field", RestName)
	}
	if p.err != nil {
		return nil, p.err
	}
	t.Rest = false // the outermost has one in any case
	return t, nil
}

// avroType is any schema but a name and a union.
type avroType struct {
	Type      json.RawMessage   `json:"type"`
	Name      string            `json:"name"`
	Namespace *string           `json:"namespace"`
	Fields    []json.RawMessage `json:"fields"`
	Items     json.RawMessage   `json:"items"`
	Values    json.RawMessage   `json:"values"`
	Logical   string            `json:"logicalType"`
	Is        string            `json:"kubecdc.type"`
	Digits    int               `json:"kubecdc.digits"`
	JSON      *string           `json:"kubecdc.name"`
}

type parser struct {
	records map[string]*Type // by their full names; nil while one is being read
	fields  int
	err     error // the first
}

func (p *parser) refuse(format string, values ...any) *Type {
	if p.err == nil {
		p.err = fmt.Errorf("%w: "+format, append([]any{ErrOther}, values...)...)
	}
	return Of(Text)
}

// value reads the schema of a value that is not null, within a namespace.
func (p *parser) value(text []byte, namespace string, depth int) *Type {
	var name string
	if json.Unmarshal(text, &name) == nil {
		return p.named(name, namespace)
	}
	var s avroType
	if depth > 3*MaxDepth || json.Unmarshal(text, &s) != nil || json.Unmarshal(s.Type, &name) != nil {
		return p.refuse("it has a type such as %.40s", text)
	}
	switch {
	case name == "record":
		return p.record(&s, namespace, depth)
	case name == "array":
		return p.elements(List, s.Items, namespace, depth)
	case name == "map":
		return p.elements(Map, s.Values, namespace, depth)
	case name == "long" && s.Logical == "timestamp-micros":
		return &Type{Kind: Time, Digits: s.Digits}
	case name == "string" && s.Is == "rest":
		return Of(String)
	case name == "string" && s.Is != "":
		for kind, is := range textKinds() {
			if is == s.Is {
				return Of(kind)
			}
		}
	case s.Logical == "":
		return p.named(name, namespace)
	}
	return p.refuse("it has a type such as %.40s", text)
}

// named is a type by its name.
func (p *parser) named(name, namespace string) *Type {
	switch name {
	case "boolean":
		return Of(Bool)
	case "long":
		return Of(Long)
	case "double":
		return Of(Double)
	case "string":
		return Of(String)
	}
	if t := p.records[fullName(name, namespace)]; t != nil {
		return t
	}
	return p.refuse("it has a type %.40q", name)
}

func fullName(name, namespace string) string {
	if namespace == "" || strings.Contains(name, ".") {
		return name
	}
	return namespace + "." + name
}

func (p *parser) elements(kind Kind, text []byte, namespace string, depth int) *Type {
	t := &Type{Kind: kind}
	text, t.Nullable = branchOf(text)
	t.Elem = p.value(text, namespace, depth+1)
	return t
}

// branchOf is the other branch of a union with null, or the text itself where it is none.
func branchOf(text []byte) (branch []byte, nullable bool) {
	var union []json.RawMessage
	if json.Unmarshal(text, &union) == nil && len(union) == 2 && string(union[0]) == `"null"` {
		return union[1], true
	}
	return text, false
}

func (p *parser) record(s *avroType, namespace string, depth int) *Type {
	if s.Namespace != nil {
		namespace = *s.Namespace
	}
	name := fullName(s.Name, namespace)
	if at := strings.LastIndexByte(name, '.'); at >= 0 {
		namespace = name[:at]
	}
	if _, known := p.records[name]; known {
		return p.refuse("it has two types %.40q", name)
	}
	p.records[name] = nil
	var fields []Field
	rest := false
	for i, text := range s.Fields {
		f, ok := p.field(text, namespace, depth)
		switch {
		case !ok:
			return Of(Text)
		case f.Name == RestName && i == 0:
			rest = true
		default:
			fields = append(fields, f)
		}
	}
	t := newRecord(name, fields)
	t.Rest = rest
	p.records[name] = t
	return t
}

func (p *parser) field(text []byte, namespace string, depth int) (f Field, ok bool) {
	var s avroType
	if p.fields++; p.fields > 2*MaxFields || json.Unmarshal(text, &s) != nil {
		p.refuse("it has too many fields")
		return f, false
	}
	branch, nullable := branchOf(s.Type)
	if !nullable {
		p.refuse("field %.40q cannot be null", s.Name)
		return f, false
	}
	f = Field{JSON: s.Name, Name: s.Name, Type: p.value(branch, namespace, depth+1)}
	if s.JSON != nil {
		f.JSON = *s.JSON
	}
	return f, p.err == nil
}

// Attributes of an Avro schema that say what its types stand for. Avro lets schemas have more than it knows.
const (
	attributeName   = "kubecdc.name"   // a field's name in JSON, where it is another one
	attributeType   = "kubecdc.type"   // json, quantity, int-or-string
	attributeDigits = "kubecdc.digits" // of the fraction of a second
)

// Avro is the schema of objects of the type, a record, with the rest as its first field.
func (t *Type) Avro() []byte {
	w := avroWriter{written: map[*Type]bool{}}
	w.record(t, true)
	return w.b.Bytes()
}

type avroWriter struct {
	b       bytes.Buffer
	written map[*Type]bool
}

func (w *avroWriter) printf(format string, values ...any) { fmt.Fprintf(&w.b, format, values...) }

// record writes the record, or its name where it is written already.
func (w *avroWriter) record(t *Type, rest bool) {
	if w.written[t] {
		w.printf("%q", t.Name)
		return
	}
	w.written[t] = true
	w.printf(`{"type":"record","name":%q,"fields":[`, t.Name)
	if rest {
		w.printf(`{"name":%q,"type":["null",{"type":"string",%q:"rest"}],"default":null}`, RestName, attributeType)
	}
	for i := range t.Fields {
		if i > 0 || rest {
			w.b.WriteByte(',')
		}
		w.field(&t.Fields[i])
	}
	w.b.WriteString("]}")
}

func (w *avroWriter) field(f *Field) {
	w.printf(`{"name":%q,`, f.Name)
	if f.Name != f.JSON {
		w.printf("%q:%s,", attributeName, quoted(f.JSON))
	}
	w.b.WriteString(`"type":["null",`)
	w.value(f.Type)
	w.b.WriteString(`],"default":null}`)
}

func (w *avroWriter) value(t *Type) {
	switch t.Kind {
	case Bool:
		w.b.WriteString(`"boolean"`)
	case Long:
		w.b.WriteString(`"long"`)
	case Double:
		w.b.WriteString(`"double"`)
	case String:
		w.b.WriteString(`"string"`)
	case Time:
		w.printf(`{"type":"long","logicalType":"timestamp-micros",%q:%d}`, attributeDigits, t.Digits)
	case Record:
		w.record(t, t.Rest)
	case List:
		w.elements(`{"type":"array","items":`, t)
	case Map:
		w.elements(`{"type":"map","values":`, t)
	default:
		w.printf(`{"type":"string",%q:%q}`, attributeType, textKinds()[t.Kind])
	}
}

func (w *avroWriter) elements(begin string, t *Type) {
	w.b.WriteString(begin)
	if t.Nullable {
		w.b.WriteString(`["null",`)
	}
	w.value(t.Elem)
	if t.Nullable {
		w.b.WriteByte(']')
	}
	w.b.WriteByte('}')
}

// textKinds are the kinds that are strings in Avro, and what the attribute says of them.
func textKinds() map[Kind]string {
	return map[Kind]string{Text: "json", Quantity: "quantity", IntOrString: "int-or-string"}
}

// quoted is a text as JSON.
func quoted(text string) []byte { return ascii(appendString(nil, []byte(text))) }

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
