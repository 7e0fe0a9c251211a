package typed

import (
	"bytes"
	"fmt"
)

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
