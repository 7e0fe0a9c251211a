package filter

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/scan"
)

// view is what an expression sees of one record.
type view struct {
	rec       *change.Record
	object    any
	oldObject any // nil until the expression comes to it
}

// read returns a part, or what cannot be one as it is.
func read(text []byte, proof *scan.Proof) (value any, err error) {
	if isPart(proof) {
		return &part{proof: proof}, nil
	}
	err = json.Unmarshal(text, &value)
	return value, err
}

// isPart says whether what is proven can be a part.
func isPart(proof *scan.Proof) bool {
	c := proof.Cursor()
	return proof.Whole() && !proof.Huge() && c.Byte() == '{'
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
	var proof scan.Proof
	proof.Prove(rec.Before, "")
	object, err := read(rec.Before, &proof)
	if err != nil {
		return types.NewErr("%s: %v", unreadable, err)
	}
	return object
}
