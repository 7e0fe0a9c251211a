package typed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/avro"
)

// ErrOther is what ParseAvro says of schemas that Avro has not written.
var ErrOther = errors.New("it is no schema of kubecdc")

// ParseAvro is the type whose schema the text is, as Avro writes it or a registry spells it again: with namespaces
// apart from names, and other blanks. It returns ErrOther for any other schema.
func ParseAvro(text []byte) (*Type, error) {
	schema, err := avro.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOther, err)
	}
	p := parser{records: map[string]*Type{}}
	t := p.value(schema.Root(), "", 0)
	if p.err == nil && (t.Kind != Record || !t.Rest) {
		p.refuse("it is not a record with %s as its first field", RestName)
	}
	if p.err != nil {
		return nil, p.err
	}
	t.Rest = false // the outermost has one in any case
	return t, nil
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
func (p *parser) value(s *avro.SchemaNode, namespace string, depth int) *Type {
	is, _ := s.Props[attributeType].(string)
	named := p.records[fullName(s.Type, namespace)]
	switch {
	case depth > 3*MaxDepth:
		return p.refuse("it is too deep")
	case s.Type == "record":
		return p.record(s, depth)
	case s.Type == "array":
		return p.elements(List, s.Items, namespace, depth)
	case s.Type == "map":
		return p.elements(Map, s.Values, namespace, depth)
	case s.Type == "long" && s.LogicalType == "timestamp-micros":
		digits, _ := s.Props[attributeDigits].(int64)
		return &Type{Kind: Time, Digits: int(digits)}
	case s.LogicalType == "" && is == "rest":
		return Of(String)
	case named != nil:
		return named
	}
	for kind, as := range scalarKinds() {
		if as.avro == s.Type && as.is == is && s.LogicalType == "" {
			return Of(kind)
		}
	}
	return p.refuse("it has a type %.40q", s.Type)
}

func fullName(name, namespace string) string {
	if namespace == "" || strings.Contains(name, ".") {
		return name
	}
	return namespace + "." + name
}

func (p *parser) elements(kind Kind, of *avro.SchemaNode, namespace string, depth int) *Type {
	t := &Type{Kind: kind}
	of, t.Nullable = branchOf(of)
	t.Elem = p.value(of, namespace, depth+1)
	return t
}

// branchOf is the other branch of a union with null, or the schema itself where it is none.
func branchOf(s *avro.SchemaNode) (branch *avro.SchemaNode, nullable bool) {
	if s.Type == "union" && len(s.Branches) == 2 && s.Branches[0].Type == "null" {
		return &s.Branches[1], true
	}
	return s, false
}

func (p *parser) record(s *avro.SchemaNode, depth int) *Type {
	name := fullName(s.Name, s.Namespace)
	p.records[name] = nil
	var fields []Field
	rest := false
	for i := range s.Fields {
		f, ok := p.field(&s.Fields[i], name[:max(strings.LastIndexByte(name, '.'), 0)], depth)
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

func (p *parser) field(s *avro.SchemaField, namespace string, depth int) (f Field, ok bool) {
	if p.fields++; p.fields > 2*MaxFields {
		p.refuse("it has too many fields")
		return f, false
	}
	branch, nullable := branchOf(&s.Type)
	if !nullable {
		p.refuse("field %.40q cannot be null", s.Name)
		return f, false
	}
	f = Field{JSON: s.Name, Name: s.Name, Type: p.value(branch, namespace, depth+1)}
	if original, told := s.Props[attributeName].(string); told {
		f.JSON = original
	}
	return f, p.err == nil
}

// Attributes of an Avro schema that say what its types stand for. Avro lets schemas have more than it knows.
const (
	attributeName   = "kubecdc.name"   // a field's name in JSON, where it is another one
	attributeType   = "kubecdc.type"   // json, quantity, int-or-string
	attributeDigits = "kubecdc.digits" // of the fraction of a second
)

// What Kafka Connect's converters take for the name of a type, by which Debezium's sinks choose that of a column.
const (
	connectJSON = `"connect.name":"io.debezium.data.Json"`
	connectTime = `"connect.name":"io.debezium.time.MicroTimestamp"`
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
		w.printf(`{"name":%q,"type":["null",{"type":"string",%s,%q:"rest"}],"default":null}`, RestName, connectJSON, attributeType)
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
		w.printf("%q:%s,", attributeName, ascii(appendString(nil, []byte(f.JSON))))
	}
	w.b.WriteString(`"type":["null",`)
	w.value(f.Type)
	w.b.WriteString(`],"default":null}`)
}

func (w *avroWriter) value(t *Type) {
	switch t.Kind {
	case Time:
		w.printf(`{"type":"long","logicalType":"timestamp-micros",%s,%q:%d}`, connectTime, attributeDigits, t.Digits)
	case Text:
		w.printf(`{"type":"string",%s,%q:"json"}`, connectJSON, attributeType)
	case Record:
		w.record(t, t.Rest)
	case List:
		w.elements(`{"type":"array","items":`, t)
	case Map:
		w.elements(`{"type":"map","values":`, t)
	default:
		if as := scalarKinds()[t.Kind]; as.is == "" {
			w.printf("%q", as.avro)
		} else {
			w.printf(`{"type":%q,%q:%q}`, as.avro, attributeType, as.is)
		}
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

// scalarKind is how a kind is in Avro, its type and what the attribute says of it, and its types in JSON Schema.
type scalarKind struct {
	avro, is string
	json     []string
}

func scalarKinds() map[Kind]scalarKind {
	return map[Kind]scalarKind{
		Bool: {"boolean", "", []string{"boolean"}}, Long: {"long", "", []string{"integer"}}, Double: {"double", "", []string{"number"}},
		String: {"string", "", []string{"string"}}, Text: {"string", "json", nil},
		Quantity: {"string", "quantity", []string{"string", "number"}}, IntOrString: {"string", "int-or-string", []string{"integer", "string"}},
	}
}

// JSONSchema describes objects of the type, a record, as JSON. Further fields are allowed, and null is wherever a
// server may write it.
func (t *Type) JSONSchema(title string) []byte {
	defs := map[string]any{} // the records within, by their names
	root := t.describedIn(defs)
	root["type"] = "object"
	root["$schema"], root["title"] = "https://json-schema.org/draft/2020-12/schema", title
	if len(defs) > 0 {
		root["$defs"] = defs
	}
	text, _ := json.Marshal(root) // of maps and texts it cannot fail
	return ascii(text)
}

// describedIn describes a record.
func (t *Type) describedIn(defs map[string]any) map[string]any {
	properties := map[string]any{}
	for i := range t.Fields {
		properties[t.Fields[i].JSON] = t.Fields[i].Type.valueIn(defs)
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

// valueIn describes a value, and refers to a record, which is written once.
func (t *Type) valueIn(defs map[string]any) any {
	switch t.Kind {
	case Text:
		return true
	case Time:
		return orNull("format", "date-time", "string")
	case Record:
		if _, written := defs[t.Name]; !written {
			defs[t.Name] = true // while it is being written
			defs[t.Name] = t.describedIn(defs)
		}
		return map[string]any{"$ref": "#/$defs/" + t.Name}
	case List:
		return orNull("items", t.Elem.valueIn(defs), "array")
	case Map:
		return orNull("additionalProperties", t.Elem.valueIn(defs), "object")
	}
	return orNull("", nil, scalarKinds()[t.Kind].json...)
}
