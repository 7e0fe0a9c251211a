package filter

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/scan"
)

// seen is what an expression sees of the record, whose object is read already. CEL calls a function where the
// expression comes to it, and once.
func seen(rec *change.Record, object any) map[string]any {
	return map[string]any{
		"object": object, "op": rec.Op.String(),
		"oldObject": func() any { return before(rec) },
		"namespaceObject": func() any {
			if rec.Key.Namespace == "" {
				return types.NullValue
			}
			return map[string]any{"metadata": map[string]any{"name": rec.Key.Namespace, "labels": rec.NamespaceLabels}}
		},
	}
}

// read returns a part, or what cannot be one as it is.
func read(text []byte, proof *scan.Proof) (value any, err error) {
	if c := proof.Cursor(); proof.Whole() && !proof.Huge() && c.Byte() == '{' {
		return &part{proof: proof}, nil
	}
	err = json.Unmarshal(text, &value)
	return value, err
}

// before is the value of oldObject.
func before(rec *change.Record) any {
	if rec.Before == nil {
		return types.NullValue
	}
	var proof scan.Proof
	proof.Prove(rec.Before, "")
	object, err := read(rec.Before, &proof)
	if err != nil {
		return types.NewErr("%s: %v", unreadable, err)
	}
	return object
}

// part is an object in JSON, as a map of CEL's. Where an expression selects one of its fields, only that one is read.
// For every other question all of it is decoded into the map that CEL makes itself. It is for one evaluation.
type part struct {
	proof *scan.Proof
	place int           // of the object, in the proof
	found []member      // what was asked for
	steps int           // taken to find members
	all   traits.Mapper // nil until it is needed
}

// member is a field of a part.
type member struct {
	name  types.String
	value ref.Val // nil where there is none
}

// Find is how an expression gets at a field.
func (p *part) Find(key ref.Val) (ref.Val, bool) {
	name, named := key.(types.String)
	const steps = 4096 // of looking, after which a Go map is cheaper, in an expression that looks up each key of a list
	if !named || p.all != nil || p.steps > steps {
		return p.decoded().Find(key)
	}
	for i := range p.found {
		if m := &p.found[i]; m.name == name {
			return m.value, m.value != nil
		}
	}
	value := p.read(name)
	p.found = append(p.found, member{name, value})
	return value, value != nil
}

// read is what an expression sees of a field; nil where there is none.
func (p *part) read(name types.String) ref.Val {
	found, there, steps := p.proof.At(p.place).Field(string(name))
	if p.steps += steps + len(p.found); !there {
		return nil
	}
	switch place := found.Place(); found.Byte() {
	case '"':
		return types.String(scan.Text(found.Skip()))
	case '{':
		return &part{proof: p.proof, place: place}
	}
	return types.DefaultTypeAdapter.NativeToValue(decode(found.Skip()))
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
		whole := p.proof.At(p.place)
		p.all = types.DefaultTypeAdapter.NativeToValue(decode(whole.Skip())).(traits.Mapper)
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

// errQuoting stands for an error whose text may have values of the object in it.
var errQuoting = errors.New("a function does not accept a value of this object; its message is left out, since it may quote the object")

const (
	noKey      = "no such key"
	unreadable = "read the object as it was"
)

// withoutValues is the error of an evaluation without what it quotes of the object: it is logged, and a filter sees
// values that are redacted later (I9). int("secret") would quote them, as most functions do.
func withoutValues(err error, expression string) error {
	if _, is := errors.AsType[interpreter.EvalCancelledError](err); is {
		return err // CEL's own text
	}
	text := err.Error()
	if key, found := strings.CutPrefix(text, noKey+": "); found {
		// The expression itself may have it, as a field or as a text; it may also come from the object.
		for _, around := range []string{`"` + key + `"`, `'` + key + `'`, "." + key, "?" + key} {
			if strings.Contains(expression, around) {
				return err
			}
		}
		return errors.New(noKey)
	}
	for _, constant := range []string{ // the texts of CEL's errors, or their beginnings, that quote nothing of an object
		"no such overload", "division by zero", "modulus by zero", "integer overflow", "unsigned integer overflow", "duration overflow",
		"timestamp overflow", "index out of bounds", "index out of range", unreadable,
	} {
		if strings.HasPrefix(text, constant) {
			return errors.New(constant)
		}
	}
	return errQuoting
}
