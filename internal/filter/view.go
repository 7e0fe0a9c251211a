package filter

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kubecdc/kubecdc/internal/change"
)

// view is what an expression sees of one record.
type view struct {
	rec       *change.Record
	object    any
	oldObject any // nil until the expression comes to it
}

// read returns a part, or what cannot be one as it is.
func read(text []byte) (value any, err error) {
	if p, ok := newPart(text); ok {
		return p, nil
	}
	err = json.Unmarshal(text, &value)
	return value, err
}

// ResolveName is the value of a variable.
func (v *view) ResolveName(name string) (any, bool) {
	switch name {
	case "object":
		return v.object, true
	case "op":
		return v.rec.Op.String(), true
	case "oldObject":
		if v.oldObject == nil {
			v.oldObject = before(v.rec)
		}
		return v.oldObject, true
	}
	return nil, false
}

// Parent is nil: there are no other variables.
func (v *view) Parent() cel.Activation { return nil }

// before is the value of oldObject.
func before(rec *change.Record) any {
	if rec.Before == nil {
		return types.NullValue
	}
	object, err := read(rec.Before)
	if err != nil {
		return types.NewErr("%s: %v", unreadable, err)
	}
	return object
}
