// Package locks holds the order of locks in DESIGN.md to the truth: it follows every call that is made while a lock is
// held, and finds a lock that is taken against the order.
package locks

import (
	"fmt"
	"go/types"
	"strings"

	"golang.org/x/tools/go/callgraph/cha"
	"golang.org/x/tools/go/callgraph/vta"
	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/ssa/ssautil"
)

// program is code with who calls whom.
type program struct {
	functions []*ssa.Function // those with a body
	callees   map[ssa.CallInstruction][]*ssa.Function
}

// load reads the packages in the directory that the patterns name. Of what they import only the types are read.
func load(dir string, patterns ...string) (*program, error) {
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
		packages.NeedExportFile | packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo
	found, err := packages.Load(&packages.Config{Dir: dir, Mode: mode &^ packages.NeedDeps}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("load %q: %w", patterns, err)
	}
	for _, pkg := range found {
		for _, problem := range pkg.Errors {
			return nil, fmt.Errorf("load %s: %w", pkg.PkgPath, problem)
		}
	}
	built, _ := ssautil.Packages(found, ssa.InstantiateGenerics)
	built.Build()
	return connect(built), nil
}

// connect finds who calls whom: what a function value or an interface can be is what flows there.
func connect(built *ssa.Program) *program {
	all := ssautil.AllFunctions(built)
	graph := vta.CallGraph(all, cha.CallGraph(built))
	p := &program{callees: map[ssa.CallInstruction][]*ssa.Function{}}
	for f, node := range graph.Nodes {
		if f == nil || len(f.Blocks) == 0 {
			continue
		}
		p.functions = append(p.functions, f)
		for _, edge := range node.Out {
			if edge.Site != nil {
				p.callees[edge.Site] = append(p.callees[edge.Site], edge.Callee.Func)
			}
		}
	}
	return p
}

// lockOf names the lock after the value by package, type and field: "pipeline.Line.mu". One that is no field has the
// name of its variable.
func lockOf(v ssa.Value) string {
	switch v := v.(type) {
	case *ssa.FieldAddr:
		owner := v.X.Type().Underlying().(*types.Pointer).Elem()
		field := owner.Underlying().(*types.Struct).Field(v.Field)
		if named, ok := owner.(*types.Named); ok {
			return field.Pkg().Name() + "." + named.Obj().Name() + "." + field.Name()
		}
		return field.Pkg().Name() + "." + field.Name()
	case *ssa.UnOp:
		return lockOf(v.X)
	case *ssa.Alloc:
		return v.Parent().Pkg.Pkg.Name() + "." + v.Comment
	case *ssa.FreeVar:
		return v.Parent().Pkg.Pkg.Name() + "." + v.Name()
	}
	return v.Name()
}

// effect is what a function of package sync does to its lock: 1 takes it, -1 gives it back, 0 is neither.
func effect(f *ssa.Function) (taken int, tries bool) {
	name := f.String()
	if !strings.HasPrefix(name, "(*sync.Mutex).") && !strings.HasPrefix(name, "(*sync.RWMutex).") {
		return 0, false
	}
	switch f.Name() {
	case "Lock", "RLock":
		return 1, false
	case "TryLock", "TryRLock":
		return 1, true
	case "Unlock", "RUnlock":
		return -1, false
	}
	return 0, false
}
