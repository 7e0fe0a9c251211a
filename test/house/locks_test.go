package house

import (
	"go/ast"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLocksAreListed holds DESIGN.md to the truth: it names each lock by its type and field, with its place in the
// order.
func TestLocksAreListed(t *testing.T) {
	design, err := os.ReadFile(filepath.Join("..", "..", "DESIGN.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, s := range sources(t) {
		if !strings.HasPrefix(s.dir, "internal/") && !strings.HasPrefix(s.dir, "cmd/") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			for _, lock := range locksOf(spec) {
				found++
				if !strings.Contains(string(design), lock) {
					t.Errorf("%s: DESIGN.md does not name the lock %s: add it where it is in the order", s.set.Position(n.Pos()), lock)
				}
			}
			return true
		})
	}
	if found < 20 {
		t.Errorf("only %d locks were found", found)
	}
}

// locksOf are the fields of a struct that are locks, as Type.field.
func locksOf(spec *ast.TypeSpec) (all []string) {
	fields, ok := spec.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	for _, field := range fields.Fields.List {
		kind, ok := field.Type.(*ast.SelectorExpr)
		if !ok || kind.Sel.Name != "Mutex" && kind.Sel.Name != "RWMutex" {
			continue
		}
		for _, name := range field.Names {
			all = append(all, spec.Name.Name+"."+name.Name)
		}
	}
	return all
}
