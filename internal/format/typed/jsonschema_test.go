package typed_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/kubecdc/kubecdc/internal/format/typed"
)

// compiled is the type's JSON Schema, as a library reads it.
func compiled(t testing.TB, of *typed.Type) *jsonschema.Schema {
	t.Helper()
	return compile(t, of.JSONSchema("things"))
}

func compile(t testing.TB, text []byte) *jsonschema.Schema {
	t.Helper()
	read, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	must(t, err)
	c := jsonschema.NewCompiler()
	must(t, c.AddResource("urn:test", read))
	schema, err := c.Compile("urn:test")
	if err != nil {
		t.Fatalf("%v: %.2000s", err, text)
	}
	return schema
}

func validate(t testing.TB, schema *jsonschema.Schema, object []byte) error {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(object))
	must(t, err)
	return schema.Validate(value)
}

// TestJSONSchemasAreTrueOfObjects of every built-in kind, as they are and as rules leave them, and not of others.
func TestJSONSchemasAreTrueOfObjects(t *testing.T) {
	eachKind(t, 10, asItIs, func(r *ruled) {
		if err := validate(t, compiled(t, r.of), r.object); err != nil {
			t.Errorf("%s: %v", r.of.Name, err)
		}
		if err := validate(t, compiled(t, r.narrowed), r.shaped); err != nil {
			t.Errorf("%s by %+v: %v", r.of.Name, r.rules, err)
		}
	})
	all := documents(t)
	pod := typeOf(t, all, []byte(`{"apiVersion":"v1","kind":"Pod"}`))
	for _, wrong := range []string{`{"spec":{"hostNetwork":"yes"}}`, `{"spec":{"containers":[{"ports":[{"containerPort":"http"}]}]}}`, `{"metadata":[]}`, `[]`} {
		if err := validate(t, compiled(t, pod), []byte(wrong)); err == nil || strings.Contains(err.Error(), "unmarshal") {
			t.Errorf("%s is a Pod, %v", wrong, err)
		}
	}
}

// TestSchemasOfRandomCRDsCompile, and are ASCII: what shows them acts on no character.
func TestSchemasOfRandomCRDsCompile(t *testing.T) {
	for seed := range uint64(100) {
		of := typeIn(t, world{rand.New(rand.NewPCG(seed, 22))}.document())
		compiled(t, of)
		described := of.JSONSchema("things ☃")
		for _, text := range [][]byte{described, of.Avro()} {
			if !json.Valid(text) || bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Fatalf("%s", text)
			}
		}
	}
}
