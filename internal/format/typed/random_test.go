package typed_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/format/openapi"
	"github.com/kubecdc/kubecdc/internal/format/typed"
)

// world makes CRDs and objects at random.
type world struct{ *rand.Rand }

func (w world) chance(percent int) bool { return w.IntN(100) < percent }

func one[T any](w world, of ...T) T { return of[w.IntN(len(of))] }

// name is one that may be hard to map, or to tell from another.
func (w world) name() string {
	return one(w, "replicas", "name", "a-b", "a_b", "a.b", "a_b_", "0x", "_0x", "$ref", "", "_", "é", "}{", `"q"`, `\`, "[", "kubecdc_rest", "kubecdc-rest",
		"metadata", "spec", "x y", "<&>", "\u2028", "😀", strings.Repeat("n", 256), strings.Repeat("n", 257), strings.Repeat("{", 5000), "0", "1", "00", "null")
}

type definition = map[string]any

// schema is that of one place in a CRD, and now and then nonsense.
func (w world) schema(depth int) definition {
	d := definition{}
	if w.chance(15) {
		d["nullable"] = true
	}
	if w.chance(5) {
		d["x-kubernetes-preserve-unknown-fields"] = true
	}
	kinds := []string{"string", "integer", "number", "boolean", "time", "int-or-string", "quantity", "free", "ref", "nothing", "validated"}
	if depth < 5 {
		kinds = append(kinds, "object", "object", "object", "object", "array", "array", "map", "map")
	}
	switch kind := one(w, kinds...); kind {
	case "string", "integer", "number", "boolean":
		d["type"] = kind
	case "time":
		d["type"], d["format"] = "string", "date-time"
	case "int-or-string":
		d["x-kubernetes-int-or-string"] = true
		d["anyOf"] = []definition{{"type": "integer"}, {"type": "string"}}
	case "quantity":
		d["oneOf"] = []definition{{"type": "string"}, {"type": "number"}}
	case "free":
		d["type"] = "object"
	case "ref":
		d["allOf"] = []definition{{"$ref": "#/components/schemas/" + one(w, "Thing", "Other", "Third", "Nowhere", "x.Small", "x.Micro.MicroTime")}}
	case "validated":
		d["type"] = "string"
		d["anyOf"] = []definition{{"pattern": "a"}, {"maxLength": 3}}
	case "object":
		d["type"], d["properties"] = "object", w.properties(depth)
	case "array":
		d["type"], d["items"] = "array", w.schema(depth+1)
	case "map":
		d["type"] = "object"
		d["additionalProperties"] = one[any](w, w.schema(depth+1), w.schema(depth+1), true, false)
	}
	return d
}

func (w world) properties(depth int) definition {
	properties := definition{}
	for range w.IntN(6) {
		properties[w.name()] = w.schema(depth + 1)
	}
	return properties
}

// document has a kind whose schema refers to others, which refer back.
func (w world) document() definition {
	thing := definition{"type": "object", "properties": w.properties(0), "x-kubernetes-group-version-kind": []definition{{"group": "g", "version": "v1", "kind": "Thing"}}}
	return definition{
		"Thing": thing, "Other": w.schema(0), "Third": w.schema(1),
		"x.Small":           definition{"type": "object", "properties": definition{"a": definition{"type": "integer"}, "b": w.schema(4)}},
		"x.Micro.MicroTime": definition{"type": "string", "format": "date-time"},
	}
}

// writer makes an object that is more or less what a schema says.
type writer struct {
	world
	schemas definition
	text    strings.Builder
}

func (w *writer) printf(format string, values ...any) { fmt.Fprintf(&w.text, format, values...) }

func (w *writer) value(of definition, depth int) {
	switch {
	case w.chance(6):
		w.anything(depth)
		return
	case w.chance(4):
		w.printf("null")
		return
	}
	if all, some := of["allOf"].([]definition); some {
		name := strings.TrimPrefix(all[0]["$ref"].(string), "#/components/schemas/")
		next, known := w.schemas[name].(definition)
		if !known || depth > 8 {
			w.anything(depth)
			return
		}
		w.value(next, depth+1)
		return
	}
	if properties, some := of["properties"].(definition); some && depth < 12 {
		w.object(properties, nil, depth)
		return
	}
	switch of["type"] {
	case "string":
		w.aString(of["format"] == "date-time")
	case "integer":
		w.integer()
	case "number":
		w.number()
	case "boolean":
		w.printf("%t", w.chance(50))
	case "array":
		w.list(of["items"].(definition), depth)
	case "object":
		elem, _ := of["additionalProperties"].(definition)
		w.object(nil, elem, depth)
	default:
		w.mixed(depth)
	}
}

func (w *writer) mixed(depth int) {
	switch w.IntN(4) {
	case 0:
		w.integer()
	case 1:
		w.number()
	case 2:
		w.aString(false)
	default:
		w.anything(depth)
	}
}

// object has some of the properties, some twice, and others; or entries of a map.
func (w *writer) object(properties, elem definition, depth int) {
	w.printf("{")
	between := ""
	member := func(name string, of definition) {
		w.printf("%s%s:", between, w.key(name))
		between = one(w.world, ",", " ,\n")
		w.value(of, depth+1)
	}
	for range 1 + w.IntN(2)*w.IntN(2) {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if w.chance(70) {
				member(name, properties[name].(definition))
			}
		}
	}
	for range w.IntN(4) {
		if elem != nil || properties == nil || w.chance(20) {
			member(w.name(), elem)
		}
	}
	w.printf("}")
}

// key is a name in one of its spellings.
func (w *writer) key(name string) string {
	quoted, _ := json.Marshal(name) // of a string
	if len(name) > 0 && name[0] >= 'a' && name[0] <= 'z' && w.chance(5) {
		return fmt.Sprintf(`"\u%04x%s`, name[0], quoted[2:])
	}
	return one(w.world, string(quoted), string(quoted), string(quoted), string(quoted), string(quoted), string(quoted), string(quoted), `"\ud800"`)
}

func (w *writer) list(of definition, depth int) {
	w.printf("[")
	n := one(w.world, 0, 1, 2, 3, 70)
	if depth > 3 {
		n = min(n, 2)
	}
	for i := range n {
		if i > 0 {
			w.printf(",")
		}
		w.value(of, depth+1)
	}
	w.printf("]")
}

func (w *writer) aString(isTime bool) {
	if isTime {
		w.printf("%s", one(w.world, `"2026-11-23T17:00:00Z"`, `"2026-11-23T17:00:00Z"`, `"2026-11-23T17:00:00.123456Z"`, `"2026-11-23T17:00:00.1Z"`,
			`"2026-11-23T17:00:00+02:00"`, `"2026-02-30T17:00:00Z"`, `"0000-01-01T00:00:00Z"`, `"9999-12-31T23:59:59Z"`, `"9999-12-31T23:59:59-01:00"`,
			`"2026-11-23T23:59:60Z"`, `"1969-12-31T23:59:59.999999Z"`, `"hmac-sha256:abc"`, `"2026-11-23 17:00:00Z"`, `"2026\u002d11-23T17:00:00Z"`, `""`))
		return
	}
	w.printf("%s", one(w.world, `""`, `"Running"`, `"<b>&amp;"`, `"\u003cb\u003e"`, `"80"`, `"-0"`, `"0"`, `"25%%"`, `"\ud800"`, `"\ud83d\ude00"`, "\"\u2028\"",
		`"\ufffd"`, "\"\ufffd\"", `"\/"`, `"`+strings.Repeat(`x\"`, 100)+`"`, `"99999999999999999999999"`, `"500m"`, `"\u0000"`))
}

func (w *writer) integer() {
	w.printf("%s", one(w.world, "0", "1", "-1", "80", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "-0", "1.0", "1e3",
		strings.Repeat("9", 400), "123456789012345678", "1234567890123456789"))
}

func (w *writer) number() {
	w.printf("%s", one(w.world, "0", "1.5", "1.50", "-0", "-0.0", "1e21", "1E+2", "1e-7", "0.000001", "1e400", "5e-324", "100000000000000000000", "0.1",
		"3.141592653589793238", "1e-400", "12345678901234567"))
}

func (w *writer) anything(depth int) {
	if depth > 10 {
		w.printf("7")
		return
	}
	switch w.IntN(7) {
	case 0:
		w.printf("null")
	case 1:
		w.integer()
	case 2:
		w.number()
	case 3:
		w.aString(w.chance(50))
	case 4:
		w.list(definition{"type": "integer"}, depth)
	case 5:
		w.object(nil, definition{"type": "string"}, depth)
	default:
		w.printf("true")
	}
}

func typeIn(t testing.TB, schemas definition) *typed.Type {
	t.Helper()
	text, err := json.Marshal(definition{"components": definition{"schemas": schemas}})
	must(t, err)
	document, err := openapi.Read(bytes.NewReader(text))
	must(t, err)
	of := document.Type("g", "v1", "Thing", openapi.Options{})
	if of == nil {
		t.Fatalf("there is no type in %s", text)
	}
	return of
}

// TestRandomObjectsOfRandomCRDsAreRestored: whatever a CRD says, and whatever its objects have.
func TestRandomObjectsOfRandomCRDsAreRestored(t *testing.T) {
	seeds := 150
	if testing.Short() {
		seeds = 30
	}
	for seed := range uint64(seeds) {
		w := world{rand.New(rand.NewPCG(seed, 21))}
		schemas := w.document()
		c := newCodec(t, typeIn(t, schemas))
		for range 10 {
			made := writer{world: w, schemas: schemas}
			made.object(schemas["Thing"].(definition)["properties"].(definition), nil, 0)
			c.restore([]byte(made.text.String()))
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
