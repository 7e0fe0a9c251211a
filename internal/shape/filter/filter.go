package filter

import (
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
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
	return &Filter{program, expression}, nil
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
	object, err := read(rec.Object, proof)
	if err != nil {
		return false, errors.New("read the object: it is not JSON, or contains a number that is too large")
	}
	result, _, err := f.program.Eval(seen(rec, object))
	if err != nil {
		return false, fmt.Errorf("evaluate filter: %w", withoutValues(err, f.expression))
	}
	passes, ok := result.(types.Bool)
	if !ok {
		return false, errors.New("evaluate filter: the expression is neither true nor false for this object")
	}
	return bool(passes), nil
}
