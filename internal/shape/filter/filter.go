package filter

import (
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/scan"
)

// costLimit bounds what one evaluation may cost, in CEL's units. It is what an API server allows one call
// (k8s.io/apiserver, pkg/apis/cel, PerCallLimit); reading one field costs 1.
const costLimit = 1_000_000

// errNoBefore says that an expression speaks of oldObject where nothing is kept of the objects.
var errNoBefore = errors.New("it uses oldObject, but these objects are not kept: add before: true")

// Filter is a compiled expression. It is safe for concurrent use.
type Filter struct {
	program    cel.Program
	expression string
	direct     direct // nil where only CEL can answer
}

// New compiles the expression, which sees:
//
//	object     the object as the API server sent it, less managedFields and kubectl's last-applied annotation
//	op         "added", "updated", "deleted", "replaced" or "sync"
//	oldObject  with before, the object as it was delivered last, cut and redacted; null where there is none
//	namespaceObject  the namespace of the object: metadata.name and metadata.labels; null where it has none
//
// It must be of type bool. An error points into the expression, or is errNoBefore.
func New(expression string, before bool) (*Filter, error) {
	env, ast, err := compile(expression, before)
	if err != nil {
		if _, _, with := compile(expression, true); with == nil {
			return nil, fmt.Errorf("compile filter: %w", errNoBefore)
		}
		return nil, fmt.Errorf("compile filter: correct what the dots lead to; it is CEL, as in object.spec.replicas > 1: %w", err)
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("compile filter: the expression is of type %s; want one that is true or false", t)
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(costLimit))
	if err != nil {
		return nil, fmt.Errorf("compile filter: %w", err)
	}
	return &Filter{program, expression, directly(ast.NativeRep().Expr())}, nil
}

func compile(expression string, before bool) (*cel.Env, *cel.Ast, error) {
	env, err := cel.NewEnv(
		cel.Variable("object", cel.DynType), cel.Variable("op", cel.StringType), cel.Variable("namespaceObject", cel.DynType),
		cel.OptionalTypes(), ext.Strings(ext.StringsVersion(2)), ext.Sets(),
		library.Lists(), library.Regex(), library.Quantity(), library.URLs(), library.IP(), library.CIDR(), library.Format(),
	)
	if err == nil && before {
		env, err = env.Extend(cel.Variable("oldObject", cel.DynType))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("make the environment of filters: %w", err)
	}
	ast, issues := env.Compile(expression)
	return env, ast, issues.Err()
}

// Passes says whether the record goes on. A record that speaks of no object always does, and so does a delete whose
// last state is not known: a reader must hear of it. An error is of this object, such as a field that it does not have;
// it quotes nothing of the object's values. The proof is one of the record's object.
func (f *Filter) Passes(rec *change.Record, proof *scan.Proof) (bool, error) {
	if !rec.Op.OfObject() || rec.Object == nil {
		return true, nil
	}
	if f.direct != nil && isPart(proof) {
		if passes, known := f.direct(proof); known {
			return passes, nil
		}
	}
	object, err := read(rec.Object, proof)
	if err != nil {
		return false, errors.New("read the object: it is not JSON, or contains a number that is too large")
	}
	result, _, err := f.program.Eval(&view{rec: rec, object: object})
	if err != nil {
		return false, fmt.Errorf("evaluate filter: %w", withoutValues(err, f.expression))
	}
	passes, ok := result.(types.Bool)
	if !ok {
		return false, errors.New("evaluate filter: the expression is neither true nor false for this object")
	}
	return bool(passes), nil
}

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
