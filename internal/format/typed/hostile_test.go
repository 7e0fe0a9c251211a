package typed_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/format/openapi"
	"github.com/kubecdc/kubecdc/internal/format/typed"
)

func kindOf(properties definition) definition {
	return definition{"type": "object", "properties": properties, "x-kubernetes-group-version-kind": []definition{{"group": "g", "version": "v1", "kind": "Thing"}}}
}

func fieldsOf(n int, of definition) definition {
	properties := definition{}
	for i := range n {
		properties[fmt.Sprintf("field%d", i)] = of
	}
	return properties
}

// mostSchema is how large a schema may become, whatever a CRD says.
const mostSchema = 4 << 20

// TestI6HostileSchemasAreBounded: schemas that are as large as etcd takes them become types that registries take, and
// their objects are whole.
func TestI6HostileSchemasAreBounded(t *testing.T) {
	text := definition{"type": "string"}
	deep, chain := text, definition{"type": "array", "items": text}
	for range 3000 {
		deep = definition{"type": "object", "properties": definition{"a": deep}}
		chain = definition{"type": "object", "additionalProperties": definition{"type": "array", "items": chain}}
	}
	wide := fieldsOf(5000, text)
	long := definition{}
	for i := range 300 {
		long[fmt.Sprintf("%s%d", strings.Repeat("{", 5000), i)] = text
		long[fmt.Sprintf("%s%d", strings.Repeat("}", 250), i)] = definition{"type": "object", "properties": fieldsOf(20, text)}
	}
	references := definition{"Thing": kindOf(definition{"next": definition{"$ref": "#/components/schemas/n0"}})}
	for i := range 2000 {
		references[fmt.Sprintf("n%d", i)] = definition{"type": "object", "properties": definition{
			"left":  definition{"$ref": fmt.Sprintf("#/components/schemas/n%d", i+1)},
			"right": definition{"allOf": []definition{{"$ref": fmt.Sprintf("#/components/schemas/n%d", i+1)}}},
			"back":  definition{"$ref": fmt.Sprintf("#/components/schemas/n%d", i/2)},
		}}
	}
	for name, schemas := range map[string]definition{
		"5,000 fields":            {"Thing": kindOf(wide)},
		"5,000 fields, each wide": {"Thing": kindOf(fieldsOf(500, definition{"type": "object", "properties": fieldsOf(100, text)}))},
		"3,000 levels":            {"Thing": kindOf(definition{"a": deep})},
		"maps of lists of maps":   {"Thing": kindOf(definition{"a": chain})},
		"names of braces":         {"Thing": kindOf(long)},
		"references":              references,
		"itself":                  {"Thing": kindOf(definition{"a": definition{"$ref": "#/components/schemas/Thing"}})},
		"nothing":                 {"Thing": kindOf(nil)},
		"no object":               {"Thing": definition{"type": "string", "x-kubernetes-group-version-kind": kindOf(nil)["x-kubernetes-group-version-kind"]}},
	} {
		t.Run(name, func(t *testing.T) {
			of := typeIn(t, schemas)
			schema := of.Avro()
			described := of.JSONSchema("things")
			if len(schema) > mostSchema || len(described) > mostSchema {
				t.Errorf("the schemas have %d and %d bytes", len(schema), len(described))
			}
			c := newCodec(t, of)
			c.restore([]byte(`{"a":{"a":{"a":{"a":[{"b":1}]}}},"next":{"left":{"right":{"back":{"left":null}}}},"field7":"x","field4999":1}`))
			c.restore([]byte(`{"a":` + strings.Repeat(`{"a":`, 2000) + `1` + strings.Repeat(`}`, 2000) + `}`))
		})
	}
}

// TestI6ObjectsGrowByABoundedFactor: an element of two bytes of a record of 5,000 fields would be 5,000 bytes.
func TestI6ObjectsGrowByABoundedFactor(t *testing.T) {
	wide := definition{"type": "object", "properties": fieldsOf(5000, definition{"type": "string"})}
	c := newCodec(t, typeIn(t, definition{"Thing": kindOf(definition{
		"list": definition{"type": "array", "items": wide}, "map": definition{"type": "object", "additionalProperties": wide}, "kind": definition{"type": "string"},
	})}))
	object := []byte(`{"kind":"Thing","list":[` + strings.Repeat("{},", 100_000) + `{}]}`)
	if message := c.restore(object); len(message) > 2*len(object) {
		t.Errorf("%d bytes became %d", len(object), len(message))
	}
	var entries []string
	for i := range 10_000 {
		entries = append(entries, fmt.Sprintf(`"%d":{}`, i))
	}
	object = []byte(`{"kind":"Thing","map":{` + strings.Join(entries, ",") + `}}`)
	if message := c.restore(object); len(message) > 2*len(object) {
		t.Errorf("%d bytes became %d", len(object), len(message))
	}
	if message := c.restore([]byte(`{"kind":"Thing","list":[{"field7":"x"}]}`)); bytes.Contains(message, []byte("field7")) {
		t.Error("what fits is in the rest")
	}
}

// TestI4KeysOfBracesStayTheirs: no name that a tenant gives a key is taken for another one's, or for a part of the
// rest.
func TestI4KeysOfBracesStayTheirs(t *testing.T) {
	c := newCodec(t, typeIn(t, definition{"Thing": kindOf(definition{
		"data": definition{"type": "object", "additionalProperties": definition{"type": "string"}},
		"list": definition{"type": "array", "items": definition{"type": "object", "properties": definition{"a": definition{"type": "integer"}}}},
		"a-b":  definition{"type": "integer"}, "a_b": definition{"type": "integer"},
		"kubecdc_rest": definition{"type": "string"},
	})}))
	for _, object := range []string{
		`{"data":{"}]}":"a","{\"a\":":"b","\u007d]}":"c","0":"d"}}`,
		`{"data":{"a":"1","\u0061":"2","b":null,"c":7,"d":{"a":1}}}`,
		`{"list":[{"a":1,"0":2},{"a":1.0},{"a":"x","a":1,"1":{"a":1}}]}`,
		`{"list":{"0":{"a":1}}}`, `{"list":[null]}`, `{"list":[[]]}`, `{"list":[]}`, `{"data":[]}`, `{"data":{}}`,
		`{"a-b":1,"a_b":2,"kubecdc_rest":"{\"a_b\":3}","a.b":4}`, `{"kubecdc_rest":{"a_b":3}}`,
		`{}`, `{"":{"":{"":1}}}`, `{"data":{"\ud800":"x","\ufffd":"y","\udc00":"z"}}`,
	} {
		c.restore([]byte(object))
	}
}

// TestTimesAreExact, whatever is after the second.
func TestTimesAreExact(t *testing.T) {
	moment := definition{"type": "string", "format": "date-time"}
	c := newCodec(t, typeIn(t, definition{
		"Thing": kindOf(definition{"a": moment, "b": definition{"$ref": "#/components/schemas/x.MicroTime"}}), "x.MicroTime": moment,
	}))
	for _, at := range []string{"2026-11-23T17:00:00Z", "2026-11-23T17:00:00.123456Z", "2026-11-23T17:00:00.000000Z", "1969-12-31T23:59:59.999999Z",
		"0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "2026-11-23T17:00:00.5Z", "2026-11-23T17:00:00+01:00", "2024-02-29T00:00:00Z",
		"2026-02-29T00:00:00Z", "2026-11-23T24:00:00Z", "2026-11-23T17:00:00,123456Z", `\ud800`} {
		for _, field := range []string{"a", "b"} {
			message := c.restore([]byte(`{"` + field + `":"` + at + `"}`))
			canonical := map[string]string{"a": "2006-01-02T15:04:05Z", "b": "2006-01-02T15:04:05.000000Z"}[field]
			parsed, err := time.Parse(canonical, at)
			if exact := err == nil && parsed.Format(canonical) == at; exact != (message[0] == 0) {
				t.Errorf("%s as %s has a rest: %t", at, field, message[0] != 0)
			}
		}
	}
}

// TestTypesThatNobodyKnows: other kinds are none.
func TestTypesThatNobodyKnows(t *testing.T) {
	document, err := openapi.Read(strings.NewReader(`{"components":{"schemas":{"a":null}}}`))
	must(t, err)
	if of := document.Type("g", "v1", "Thing", openapi.Options{}); of != nil {
		t.Errorf("there is a type %+v", of)
	}
}

// TestMessagesOfOthersAreErrors: a topic may hold anything.
func TestMessagesOfOthersAreErrors(t *testing.T) {
	of := typeIn(t, definition{"Thing": kindOf(definition{
		"a": definition{"type": "number"}, "b": definition{"type": "object"}, "l": definition{"type": "array", "items": definition{"type": "array", "items": definition{"type": "string"}}},
	})})
	whole, err := typed.NewEncoder(of).Append(nil, []byte(`{"a":1.5,"b":{"x":[]},"l":[["x"],["y","z"]],"unknown":{}}`))
	must(t, err)
	d := typed.NewDecoder(of)
	for n := range whole {
		if object, err := d.Append([]byte("x"), whole[:n]); err == nil || string(object) != "x" {
			t.Errorf("%d bytes of %d are read as %s", n, len(whole), object)
		}
	}
	if _, err := d.Append(nil, append(whole[:len(whole):len(whole)], 0)); err == nil {
		t.Error("a byte too much is read")
	}
	for _, message := range []string{
		"\x04\x00\x00\x00",                                         // no such branch
		"\x02\x04{]\x00\x00\x00",                                   // a rest that is no JSON
		"\x02\x04[]\x00\x00\x00",                                   // nor an object
		"\x00\x02\x00\x00\x00\x00\x00\x00\xf8\x7f\x00\x00",         // not a number
		"\x00\x00\x02\x04]]\x00",                                   // text that is no JSON
		"\x00\x00\x00\x02\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", // many items
		"\x02\x1c{\"l\":{\"0\":7}}\x00\x00\x00\x02\x02\x00\x00",
	} {
		if object, err := d.Append(nil, []byte(message)); err == nil {
			t.Errorf("%q is read as %s", message, object)
		}
	}
	if object, err := d.Append(nil, whole); err != nil || !json.Valid(object) {
		t.Errorf("behind them an object is read as %s, %v", object, err)
	}
}
