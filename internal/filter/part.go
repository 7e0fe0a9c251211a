package filter

import (
	"fmt"
	"math"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// part is an object in JSON, as a map of CEL's. Where an expression selects one of its fields, only that one is read.
// For every other question all of it is decoded into the map that CEL makes itself. It is for one evaluation.
type part struct {
	text    []byte
	members []member      // in the order of the text
	odd     bool          // a key is not written as it reads: all is decoded
	steps   int           // taken to find members
	all     traits.Mapper // nil until it is needed
}

// member is a field of a part. It has places in the text instead of slices, since there are many of them.
type member struct {
	from, to   uint32  // of the key, less its quotes
	start, end uint32  // of the value
	value      ref.Val // nil until it is needed
}

// newPart returns false for what is not an object in JSON whose numbers CEL can have.
func newPart(text []byte) (*part, bool) {
	c := scan.New(text)
	if c.Byte() != '{' || len(text) > math.MaxUint32 {
		return nil, false
	}
	const most = 16 // members of an object, as a rule
	p := &part{text: text, members: make([]member, 0, most)}
	c.Enter()
	for c.Next('}') {
		from := c.At() + len(`"`)
		key := c.Key()
		name := scan.Text(key)
		p.odd = p.odd || len(name) > 0 && &name[0] != &key[1] // as Text returns it if nothing has to be read
		start := c.At()
		c.Skip()
		p.members = append(p.members, member{from: uint32(from), to: uint32(from + len(name)), start: uint32(start), end: uint32(c.At())})
	}
	return p, c.Whole() && !c.Huge()
}

// Find is how an expression gets at a field.
func (p *part) Find(key ref.Val) (ref.Val, bool) {
	name, named := key.(types.String)
	if !named || p.odd || p.all != nil || p.tired() {
		return p.decoded().Find(key)
	}
	for i := len(p.members) - 1; i >= 0; i-- { // of a key that comes twice the last one counts
		if m := &p.members[i]; string(p.text[m.from:m.to]) == string(name) {
			if m.value == nil {
				m.value = value(p.text[m.start:m.end])
			}
			return m.value, true
		}
	}
	return nil, false
}

// tired says that so much was looked for that a Go map is cheaper, in an expression that looks up each key of a list.
func (p *part) tired() bool {
	const steps, times = 4096, 16
	p.steps += len(p.members)
	return p.steps > steps+times*len(p.members)
}

// value is what an expression sees of a proven text.
func value(text []byte) ref.Val {
	switch text[0] {
	case '"':
		return types.String(scan.Text(text))
	case '{':
		if p, ok := newPart(text); ok {
			return p
		}
	}
	return types.DefaultTypeAdapter.NativeToValue(decode(text))
}

// decode is the value of a proven text.
func decode(text []byte) (value any) {
	if err := json.Unmarshal(text, &value); err != nil {
		panic(fmt.Sprintf("decode a part of an object that was found to be JSON: %T", err)) // CEL makes it an error
	}
	return value
}

func (p *part) decoded() traits.Mapper {
	if p.all == nil {
		p.all = types.DefaultTypeAdapter.NativeToValue(decode(p.text)).(traits.Mapper)
	}
	return p.all
}

// Contains, and all methods below, are those of the map that CEL makes itself.
func (p *part) Contains(key ref.Val) ref.Val {
	_, found := p.Find(key)
	return types.Bool(found)
}

// Get returns an error for a key that is not there.
func (p *part) Get(key ref.Val) ref.Val { return p.decoded().Get(key) }

// Iterator walks over the keys.
func (p *part) Iterator() traits.Iterator { return p.decoded().Iterator() }

// Fold calls the folder for each key and value.
func (p *part) Fold(f traits.Folder) { types.ToFoldableMap(p.decoded()).Fold(f) }

// Size is the number of keys.
func (p *part) Size() ref.Val { return p.decoded().Size() }

// IsZeroValue says whether there is no key.
func (p *part) IsZeroValue() bool { return p.decoded().Size() == types.IntZero }

// Equal compares keys and values.
func (p *part) Equal(other ref.Val) ref.Val { return p.decoded().Equal(other) }

// ConvertToType is a type conversion of CEL.
func (p *part) ConvertToType(t ref.Type) ref.Val { return p.decoded().ConvertToType(t) }

// ConvertToNative makes a Go value.
func (p *part) ConvertToNative(t reflect.Type) (any, error) { return p.decoded().ConvertToNative(t) }

// Type is that of maps.
func (p *part) Type() ref.Type { return types.MapType }

// Value is the map in Go.
func (p *part) Value() any { return p.decoded().Value() }
