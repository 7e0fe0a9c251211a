package typed_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/kubecdc/kubecdc/internal/format/typed"
	"github.com/kubecdc/kubecdc/test/objects"
)

// FuzzRestore has random types and objects of odd keys, numbers and white space, duplicates and no JSON at all.
func FuzzRestore(f *testing.F) {
	f.Add(uint8(1), []byte("\x02\x00\x00"))
	f.Add(uint8(2), []byte{5, 0, 1, 0, 0, 6, 3, 0, 1, 3, 9, 0, 1, 4, 200, 7, 7, 7})
	codecs := make([]*codec, 6)
	for seed := range codecs {
		codecs[seed] = newCodec(f, typeIn(f, shapedDocument(world{rand.New(rand.NewPCG(uint64(seed), 5))})))
	}
	f.Fuzz(func(t *testing.T, seed uint8, choices []byte) {
		c := *codecs[int(seed)%len(codecs)]
		c.t = t
		object := objects.Shaped(choices)
		if json.Valid(object) {
			c.restore(object)
			return
		}
		dst, err := c.encoder.Append([]byte("x"), object)
		if !errors.Is(err, typed.ErrNoObject) || string(dst) != "x" {
			t.Fatalf("%q is written as %q, %v", object, dst, err)
		}
	})
}

// shapedDocument has the keys that shaped objects have.
func shapedDocument(w world) definition {
	schemas := w.document()
	var furnish func(properties definition, depth int)
	furnish = func(properties definition, depth int) {
		for _, name := range []string{"metadata", "env", "name", "value", "a", "b", "status", "spec", "data", "{\"a\":", "}]}", "", "é", "a\""} {
			of := w.schema(min(depth, 4))
			if w.chance(30) && depth < 2 {
				inner := definition{}
				furnish(inner, depth+1)
				of = definition{"type": "object", "properties": inner}
			}
			properties[name] = of
		}
	}
	furnish(schemas["Thing"].(definition)["properties"].(definition), 0)
	return schemas
}

// FuzzDecode: whatever comes from a topic is an object, or an error.
func FuzzDecode(f *testing.F) {
	f.Add(uint8(1), []byte{0, 0, 0})
	f.Add(uint8(3), []byte("\x02\x0e{\"a\":1}\x00\x00\x00"))
	decoders := make([]*typed.Decoder, 16)
	for seed := range decoders {
		decoders[seed] = typed.NewDecoder(typeIn(f, world{rand.New(rand.NewPCG(uint64(seed), 5))}.document()))
	}
	f.Fuzz(func(t *testing.T, seed uint8, message []byte) {
		object, err := decoders[int(seed)%len(decoders)].Append(nil, message)
		if err == nil && !json.Valid(object) {
			t.Fatalf("%x is read as %q", message, object)
		}
	})
}
