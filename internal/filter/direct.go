package filter

import (
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// direct answers for an object without CEL, where it is known what CEL would say: whether fields that are there, and
// are strings, equal constants. Whatever else it comes to is not known, and CEL is asked; errors are always CEL's.
type direct func(proof *scan.Proof) (result, known bool)

// directly is nil for an expression that is more than comparisons of the object's fields with strings, joined by && and
// ||. What these cost is far below any limit.
func directly(e celast.Expr) direct {
	if e.Kind() != celast.CallKind || len(e.AsCall().Args()) != 2 {
		return nil
	}
	left, right := e.AsCall().Args()[0], e.AsCall().Args()[1]
	switch name := e.AsCall().FunctionName(); name {
	case operators.LogicalAnd, operators.LogicalOr:
		return joined(directly(left), directly(right), name == operators.LogicalAnd)
	case operators.Equals, operators.NotEquals:
		if left.Kind() == celast.LiteralKind {
			left, right = right, left
		}
		return compared(left, right, name == operators.Equals)
	}
	return nil
}

// joined needs both sides, whatever the first says: an error of the second is for CEL to weigh.
func joined(left, right direct, and bool) direct {
	if left == nil || right == nil {
		return nil
	}
	return func(proof *scan.Proof) (result, known bool) {
		one, known := left(proof)
		if !known {
			return false, false
		}
		other, known := right(proof)
		if and {
			return one && other, known
		}
		return one || other, known
	}
}

func compared(field, constant celast.Expr, equal bool) direct {
	path := pathOf(field)
	if path == nil || constant.Kind() != celast.LiteralKind {
		return nil
	}
	want, isText := constant.AsLiteral().(types.String)
	if !isText {
		return nil
	}
	return func(proof *scan.Proof) (result, known bool) {
		token := proof.Find(path...)
		const short = 1 << 12 // what CEL counts of a comparison grows with the text
		if len(token) == 0 || len(token) > short || token[0] != '"' {
			return false, false
		}
		return (string(scan.Text(token)) == string(want)) == equal, true
	}
}

// pathOf are the names of the fields that lead from object to the one that is selected; nil for anything else.
func pathOf(e celast.Expr) (path []string) {
	if e.Kind() != celast.SelectKind || e.AsSelect().IsTestOnly() {
		return nil
	}
	operand, name := e.AsSelect().Operand(), e.AsSelect().FieldName()
	if operand.Kind() == celast.IdentKind && operand.AsIdent() == "object" {
		return []string{name}
	}
	if path = pathOf(operand); path == nil {
		return nil
	}
	return append(path, name)
}
