package typed_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/kubecdc/kubecdc/internal/typed"
)

// closed is a type with what is needed to try its closed schema.
type closed struct {
	schema           *jsonschema.Schema
	encoder, decoder typed.Appender
}

func newClosed(t testing.TB, of *typed.Type) closed {
	t.Helper()
	return closed{compile(t, typed.JSON.Schema(of)), typed.JSON.Encoder(of), typed.JSON.Decoder(of)}
}

// restore takes an object apart, which fits the schema then, and puts it together again.
func (c closed) restore(t testing.TB, object []byte) []byte {
	t.Helper()
	message, err := c.encoder.Append([]byte("before"), object)
	if err != nil {
		t.Fatalf("%v: %.2000s", err, object)
	}
	message = bytes.TrimPrefix(message, []byte("before"))
	if err := validate(t, c.schema, message); err != nil {
		t.Fatalf("what is written is not what the schema says: %v\n%.3000s", err, message)
	}
	restored, err := c.decoder.Append([]byte("before"), message)
	if err != nil {
		t.Fatalf("%v: %.2000s\n%.2000s", err, object, message)
	}
	restored = bytes.TrimPrefix(restored, []byte("before"))
	if got, want := treeOf(t, restored), treeOf(t, object); !reflect.DeepEqual(got, want) {
		t.Fatalf("restored is another object:\n%.3000s\nwant\n%.3000s\nby\n%.3000s", restored, object, message)
	}
	return message
}

// TestParsedClosedSchemasAreTheSameTypes: of random CRDs, alone and in an envelope, and merged.
func TestParsedClosedSchemasAreTheSameTypes(t *testing.T) {
	for seed := range uint64(60) {
		w := world{rand.New(rand.NewPCG(seed, 28))}
		schemas := w.document()
		of := typeIn(t, schemas)
		of.Rest = true
		for _, of := range []*typed.Type{typed.NewRecord("E", []typed.Field{{JSON: "before", Type: of}, {JSON: "after", Type: of}}), typeIn(t, schemas)} {
			text := typed.JSON.Schema(of)
			again, err := typed.JSON.Parse(text)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if !bytes.Equal(typed.JSON.Schema(again), text) || !bytes.Equal(typed.JSON.Schema(typed.Merge(again, of)), text) {
				t.Fatalf("seed %d: parsed is\n%.3000s\nwant\n%.3000s", seed, typed.JSON.Schema(again), text)
			}
			if typed.FormOf(text) != typed.JSON || typed.FormOf(of.Avro()) != typed.Avro {
				t.Fatalf("seed %d: the forms are not told from each other", seed)
			}
		}
	}
}

// TestOtherClosedSchemasAreRefused: also those that lead around, or that allow more.
func TestOtherClosedSchemasAreRefused(t *testing.T) {
	of := func(more string) string {
		return `{"$schema":"x","title":"T","type":"object","additionalProperties":false,"properties":{"kubecdc_rest":{"type":"object"},` + more + `}`
	}
	if _, err := typed.JSON.Parse([]byte(of(`"a":{"type":"integer"}}`))); err != nil {
		t.Error(err)
	}
	for _, text := range []string{
		``, `7`, `true`, `{}`, `{"title":"T","type":"object","properties":{}}`, strings.Replace(of(`"a":true}`), `false`, `true`, 1),
		strings.Replace(of(`"a":true}`), `"title":"T",`, ``, 1), strings.Replace(of(`"a":true}`), `kubecdc_rest`, `b`, 1),
		of(`"a":{"type":"null"}}`), of(`"a":{"$ref":"#/definitions/N"}}`), of(`"a":{"$ref":"http://127.0.0.1/x"}}`), of(`"a":{"type":"array"}}`),
		of(`"a":{"$ref":"#/definitions/A"}},"definitions":{"A":{"type":"object","additionalProperties":false,"properties":{"b":{"$ref":"#/definitions/A"}}}}`),
		of(`"a":` + strings.Repeat(`{"type":"array","items":`, 200) + `true` + strings.Repeat(`}`, 200) + `}`),
	} {
		if of, err := typed.JSON.Parse([]byte(text)); !errors.Is(err, typed.ErrOther) {
			t.Errorf("%.120s: %v, %v", text, of, err)
		}
	}
}

// TestWhatDoesNotFitAClosedSchemaIsInTheRest at its place, and only that.
func TestWhatDoesNotFitAClosedSchemaIsInTheRest(t *testing.T) {
	inner := typed.NewRecord("I", []typed.Field{{JSON: "n", Type: typed.Of(typed.Long)}})
	of := typed.NewRecord("T", []typed.Field{
		{JSON: "n", Type: typed.Of(typed.Long)}, {JSON: "l", Type: &typed.Type{Kind: typed.List, Elem: inner}},
		{JSON: "m", Type: &typed.Type{Kind: typed.Map, Elem: typed.Of(typed.Bool), Nullable: true}},
		{JSON: "t", Type: typed.Of(typed.Time)}, {JSON: "any", Type: typed.Of(typed.Text)}, {JSON: typed.RestName, Type: typed.Of(typed.Long)},
	})
	c := newClosed(t, of)
	for _, one := range []struct{ object, want string }{
		{`{"n":1,"any":[null],"t":"2026-11-24T10:00:00+01:00"}`, `{"n":1,"t":"2026-11-24T10:00:00+01:00","any":[null]}`},
		{`{"n":"1","new":1.50}`, `{"kubecdc_rest":{"new":1.50,"n":"1"}}`},
		{`{"n":null,"n":2}`, `{"kubecdc_rest":{"n":null,"n":2}}`},
		{`{"l":[{"n":1},{"x":7}]}`, `{"l":[{"n":1},{}],"kubecdc_rest":{"l":{"1":{"x":7}}}}`},
		{`{"l":[{"n":1},7]}`, `{"kubecdc_rest":{"l":[{"n":1},7]}}`},
		{`{"m":{"a":true,"b":null,"c":3,"kubecdc_rest":false}}`, `{"m":{"a":true,"b":null,"kubecdc_rest":false},"kubecdc_rest":{"m":{"c":3}}}`},
		{`{"t":"2026-11-24 10:00:00Z"}`, `{"kubecdc_rest":{"t":"2026-11-24 10:00:00Z"}}`},
		{`{"kubecdc_rest":5}`, `{"kubecdc_rest":{"kubecdc_rest":5}}`},
	} {
		if got := c.restore(t, []byte(one.object)); string(got) != one.want {
			t.Errorf("%s is written as %s, want %s", one.object, got, one.want)
		}
	}
	for _, wrong := range []string{``, `[]`, `{"kubecdc_rest":7}`, `{"n":1,"kubecdc_rest":{"l":[]}`, `{"l":[],"kubecdc_rest":{"l":{"0":{}}}}`, `{"n":1,"kubecdc_rest":{"n":{}}}`} {
		if object, err := c.decoder.Append([]byte("x"), []byte(wrong)); err == nil || string(object) != "x" {
			t.Errorf("%s is read as %s, %v", wrong, object, err)
		}
	}
}

// FuzzDecodeClosed: whatever comes from a topic is an object, or an error.
func FuzzDecodeClosed(f *testing.F) {
	f.Add(uint8(1), []byte(`{"kubecdc_rest":{"a":{"0":1}}}`))
	decoders := make([]typed.Appender, 16)
	for seed := range decoders {
		decoders[seed] = typed.JSON.Decoder(typeIn(f, world{rand.New(rand.NewPCG(uint64(seed), 5))}.document()))
	}
	f.Fuzz(func(t *testing.T, seed uint8, message []byte) {
		object, err := decoders[int(seed)%len(decoders)].Append(nil, message)
		if err == nil && !json.Valid(object) {
			t.Fatalf("%q is read as %q", message, object)
		}
	})
}
