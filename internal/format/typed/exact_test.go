package typed_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"testing"

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
	encoder *typed.Encoder
	decoder *typed.Decoder
}

// newCodec has a decoder that knows the type's schema alone, as the library for Avro reads it.
func newCodec(t testing.TB, of *typed.Type) *codec {
	t.Helper()
	again, err := typed.ParseAvro(of.Avro())
	if err != nil {
		t.Fatalf("the schema is refused: %v\n%.4000s", err, of.Avro())
	}
	return &codec{t, typed.NewEncoder(of), typed.NewDecoder(again)}
}

// restore writes an object, reads it back, and says what was written.
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
	if !reflect.DeepEqual(treeOf(c.t, restored), treeOf(c.t, object)) {
		c.t.Fatalf("restored is another object:\n%.3000s\nwant\n%.3000s", restored, object)
	}
	return message
}
