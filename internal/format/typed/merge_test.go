package typed_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/twmb/avro"

	"github.com/kubecdc/kubecdc/internal/format/typed"
)

func parsed(t testing.TB, of *typed.Type) *avro.Schema {
	t.Helper()
	schema, err := avro.Parse(string(of.Avro()))
	if err != nil {
		t.Fatalf("%v\n%.4000s", err, of.Avro())
	}
	return schema
}

// changed is the CRD with some of it made anew: fields come, go, change their types, and change places.
func (w world) changed(schemas definition) definition {
	next := w.document()
	for name, one := range schemas {
		if w.chance(50) {
			next[name] = one
		}
	}
	thing := definition{"type": "object", "x-kubernetes-group-version-kind": next["Thing"].(definition)["x-kubernetes-group-version-kind"]}
	properties := definition{}
	for _, from := range []definition{schemas, next} {
		for name, one := range from["Thing"].(definition)["properties"].(definition) {
			if w.chance(70) {
				properties[name] = one
			}
		}
	}
	thing["properties"] = properties
	next["Thing"] = thing
	return next
}

// TestMergedTypesReadEachOther: each version of a CRD that changes at random reads what all others have written, as the
// library for Avro says, and has every object exactly.
func TestMergedTypesReadEachOther(t *testing.T) {
	seeds := 40
	if testing.Short() {
		seeds = 15
	}
	for seed := range uint64(seeds) {
		w := world{rand.New(rand.NewPCG(seed, 25))}
		schemas := w.document()
		var merged *typed.Type
		var versions []*avro.Schema
		for range 8 {
			of := typeIn(t, schemas)
			merged = typed.Merge(merged, of)
			if again := typed.Merge(merged, of); !bytes.Equal(again.Avro(), merged.Avro()) {
				t.Errorf("what nothing comes to changes:\n%.3000s\n%.3000s", merged.Avro(), again.Avro())
			}
			versions = append(versions, parsed(t, merged))
			for i := range versions {
				for _, pair := range [][2]*avro.Schema{{versions[i], versions[len(versions)-1]}, {versions[len(versions)-1], versions[i]}} {
					if err := avro.CheckCompatibility(pair[0], pair[1]); err != nil {
						t.Errorf("version %d of %d: %v", i+1, len(versions), err)
					}
				}
			}
			c := newCodec(t, merged)
			for range 4 {
				made := writer{world: w, schemas: schemas}
				made.object(schemas["Thing"].(definition)["properties"].(definition), nil, 0)
				c.restore([]byte(made.text.String()))
			}
			schemas = w.changed(schemas)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestParsedSchemasAreTheSameTypes: of random CRDs, also as Java spells them.
func TestParsedSchemasAreTheSameTypes(t *testing.T) {
	for seed := range uint64(60) {
		w := world{rand.New(rand.NewPCG(seed, 27))}
		of := typeIn(t, w.document())
		text := of.Avro()
		again, err := typed.ParseAvro(text)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !bytes.Equal(again.Avro(), text) {
			t.Fatalf("seed %d: parsed is\n%.3000s\nwant\n%.3000s", seed, again.Avro(), text)
		}
	}
	java := `{"type":"record","name":"Foo","namespace":"a.b","fields":[
		{"name":"kubecdc_rest","type":["null",{"type":"string","kubecdc.type":"rest"}],"default":null},
		{"name":"x_y","type":["null",{"type":"record","name":"Bar","fields":[{"name":"n","type":["null","long"],"default":null}]}],"default":null,"kubecdc.name":"x-y"},
		{"name":"z","type":["null","Bar"],"default":null},
		{"name":"t","type":["null",{"type":"record","name":"Bar","namespace":"c","fields":[{"name":"kubecdc_rest","type":["null","string"]}]}],"default":null}]}`
	of, err := typed.ParseAvro([]byte(java))
	must(t, err)
	if again, err := typed.ParseAvro(of.Avro()); err != nil || !bytes.Equal(again.Avro(), of.Avro()) || !strings.Contains(string(of.Avro()), `"a.b.Bar"`) {
		t.Errorf("%v: %s", err, of.Avro())
	}
}

func TestOtherSchemasAreRefused(t *testing.T) {
	rest := `{"name":"kubecdc_rest","type":["null","string"]}`
	for _, text := range []string{
		``, `7`, `"string"`, `{"type":"enum","name":"E","symbols":[]}`, `{"type":"record","name":"A","fields":[]}`,
		`{"type":"record","name":"A","fields":[{"name":"x","type":["null","long"]},` + rest + `]}`,
		`{"type":"record","name":"A","fields":[` + rest + `,{"name":"x","type":"long"}]}`,
		`{"type":"record","name":"A","fields":[` + rest + `,{"name":"x","type":["null","int"]}]}`,
		`{"type":"record","name":"A","fields":[` + rest + `,{"name":"x","type":["null","A"]}]}`,
		`{"type":"record","name":"A","fields":[` + rest + `,{"name":"x","type":["null",{"type":"long","logicalType":"timestamp-millis"}]}]}`,
		`{"type":"record","name":"A","fields":[` + rest + `,{"name":"x","type":["null",` + strings.Repeat(`{"type":"array","items":`, 200) + `"long"` + strings.Repeat("}", 200) + `]}]}`,
	} {
		if of, err := typed.ParseAvro([]byte(text)); !errors.Is(err, typed.ErrOther) {
			t.Errorf("%.80s: %v, %v", text, of, err)
		}
	}
}

// TestAColumnKeepsItsNameAndItsType: what comes later has another one, and what does not fit is in the rest.
func TestAColumnKeepsItsNameAndItsType(t *testing.T) {
	older := typed.NewRecord("T", []typed.Field{{JSON: "a-b", Type: typed.Of(typed.Long)}, {JSON: "n", Type: typed.Of(typed.Long)}})
	newer := typed.NewRecord("U", []typed.Field{{JSON: "a_b", Type: typed.Of(typed.String)}, {JSON: "n", Type: typed.Of(typed.String)}})
	merged := typed.Merge(older, newer)
	if merged.Fields[0].Name != "a_b" || merged.Fields[1].Type.Kind != typed.Long || merged.Fields[2].Name == "a_b" || merged.Name != "T" {
		t.Errorf("merged is %s", merged.Avro())
	}
	newCodec(t, merged).restore([]byte(`{"a-b":7,"a_b":"x","n":"seven"}`))
}

// TestABoundOfColumnsHolds, however often a CRD changes.
func TestABoundOfColumnsHolds(t *testing.T) {
	var merged *typed.Type
	for i := range 30 {
		var fields []typed.Field
		for j := range 500 {
			fields = append(fields, typed.Field{JSON: "f" + strings.Repeat("x", i) + string(rune('a'+j%26)) + strings.Repeat("y", j/26), Type: typed.Of(typed.Long)})
		}
		merged = typed.Merge(merged, typed.NewRecord("T", fields))
	}
	if n := len(merged.Fields); n < 1000 || n > typed.MaxFields {
		t.Errorf("there are %d columns", n)
	}
}

// TestARecordWithinHasItsOwnRest: a consumer that keeps the object alone can restore it.
func TestARecordWithinHasItsOwnRest(t *testing.T) {
	object := typed.NewRecord("O", []typed.Field{{JSON: "a", Type: typed.Of(typed.Long)}})
	object.Rest = true
	envelope := typed.NewRecord("E", []typed.Field{{JSON: "before", Type: object}, {JSON: "after", Type: object}})
	c := newCodec(t, envelope)
	for _, text := range []string{
		`{"before":null,"after":{"a":1,"new":2},"more":3}`, `{"before":{"x":1.50},"after":{"a":"s","y":[null]}}`, `{"before":7,"after":{}}`,
		`{"after":{"a":1,` + strings.Repeat(`"b":1,`, 100) + `"c":1}}`,
	} {
		message := c.restore([]byte(text))
		if strings.Contains(text, "new") && !strings.Contains(string(message), `{"new":2}`) {
			t.Errorf("the rest of the object is not its own: %q", message)
		}
	}
	again, err := typed.ParseAvro(envelope.Avro())
	if err != nil || !bytes.Equal(again.Avro(), envelope.Avro()) {
		t.Errorf("%v, %s", err, again.Avro())
	}
	if merged := typed.Merge(again, envelope); !bytes.Equal(merged.Avro(), envelope.Avro()) {
		t.Errorf("merged is %s", merged.Avro())
	}
}
