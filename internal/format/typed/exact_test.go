package typed_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"testing"

	"github.com/twmb/avro"

	"github.com/kubecdc/kubecdc/internal/format/typed"
)

// tree is a text of JSON, with all that a restored one must have: numbers as they are spelled, and each value of a key
// that comes more than once.
type tree any

func treeOf(t testing.TB, text []byte) tree {
	t.Helper()
	for _, half := range []string{`d800`, `dc00`} { // of a pair, which the decoder would make the same
		text = bytes.ReplaceAll(text, []byte(`\u`+half), []byte("half of a pair "+half))
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	made, err := readTree(d)
	if err != nil {
		t.Fatalf("%v in %.2000s", err, text)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		t.Fatalf("something is behind the value in %.2000s", text)
	}
	return made
}

func readTree(d *json.Decoder) (tree, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		members := map[string][]tree{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := readTree(d)
			if err != nil {
				return nil, err
			}
			members[key.(string)] = append(members[key.(string)], value)
		}
		_, err := d.Token()
		return members, err
	case json.Delim('['):
		list := []tree{}
		for d.More() {
			value, err := readTree(d)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err := d.Token()
		return list, err
	}
	return token, nil
}

// codec is one type with what is needed to try it.
type codec struct {
	t       testing.TB
	schema  *avro.Schema
	meaning meaning
	encoder *typed.Encoder
	decoder *typed.Decoder
}

// newCodec lets the library for Avro read the type's schema.
func newCodec(t testing.TB, of *typed.Type) *codec {
	t.Helper()
	text := of.Avro()
	schema, err := avro.Parse(string(text))
	if err != nil {
		t.Fatalf("the library for Avro refuses the schema: %v\n%.4000s", err, text)
	}
	return &codec{t, schema, meaningOf(t, text), typed.NewEncoder(of), typed.NewDecoder(of)}
}

// restore writes an object, reads it back, and says what was written. The library reads it, too, and what the schema
// says of its values makes the same object.
func (c *codec) restore(object []byte) []byte {
	c.t.Helper()
	message, err := c.encoder.Append([]byte("before"), object)
	if err != nil {
		c.t.Fatalf("%v: %.2000s", err, object)
	}
	message = bytes.TrimPrefix(message, []byte("before"))
	restored, err := c.decoder.Append([]byte("before"), message)
	if err != nil {
		c.t.Fatalf("%v: %.2000s\n%x", err, object, message)
	}
	restored = bytes.TrimPrefix(restored, []byte("before"))
	want := treeOf(c.t, object)
	if got := treeOf(c.t, restored); !reflect.DeepEqual(got, want) {
		c.t.Fatalf("restored is another object:\n%.3000s\nwant\n%.3000s", restored, object)
	}
	var generic any
	left, err := c.schema.Decode(message, &generic)
	if err != nil || len(left) > 0 {
		c.t.Fatalf("the library for Avro reads all but %d bytes, %v: %.2000s", len(left), err, object)
	}
	if got := c.meaning.restore(c.t, generic); !reflect.DeepEqual(got, want) {
		c.t.Fatalf("by the schema alone it is another object:\n%.3000v\nwant\n%.3000v", got, want)
	}
	return message
}
