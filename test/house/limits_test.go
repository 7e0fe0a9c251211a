package house

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What CONTRIBUTING.md allows.
const (
	mostMethods    = 3
	mostParameters = 4
)

// ofProduct says whether the file is of the program, and not of what tests it.
func (s source) ofProduct() bool {
	return strings.HasPrefix(s.dir, "internal/") || strings.HasPrefix(s.dir, "cmd/")
}

// at is a name of the file.
func (s source) at(name string) string { return s.dir + "/" + filepath.Base(s.name) + " " + name }

// TestFewParameters: more of them are a struct. A few are older than the rule.
func TestFewParameters(t *testing.T) {
	tolerated := map[string]bool{
		"internal/audit/actor.go answer": true, "internal/config/decode.go word": true,
		"internal/config/section.go readList": true,
	}
	for _, s := range sources(t) {
		if !s.ofProduct() {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && parameters(f) > mostParameters && !tolerated[s.at(f.Name.Name)] {
				t.Errorf("%s: %s has %d parameters; want %d at most", s.set.Position(f.Pos()), f.Name.Name, parameters(f), mostParameters)
			}
		}
	}
}

// parameters are those beside a context.
func parameters(f *ast.FuncDecl) int {
	n := f.Type.Params.NumFields()
	for _, p := range f.Type.Params.List {
		if of, ok := p.Type.(*ast.SelectorExpr); ok && of.Sel.Name == "Context" {
			n--
		}
	}
	return n
}

// TestNoPackageState: what is shared is handed on.
func TestNoPackageState(t *testing.T) {
	for _, s := range sources(t) {
		if !s.ofProduct() {
			continue
		}
		for _, d := range s.file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
				for _, spec := range g.Specs {
					for _, name := range spec.(*ast.ValueSpec).Names {
						if !isConstant(name.Name) {
							t.Errorf("%s: package-level var %s: hand it on", s.set.Position(name.Pos()), name.Name)
						}
					}
				}
			}
		}
	}
}

// isConstant says whether the variable is an error, the proof of an interface, or a value that Go has no constants of.
func isConstant(name string) bool {
	constants := []string{"_", "version", "escapes", "assets", "ends"}
	return strings.HasPrefix(strings.ToLower(name), "err") || slices.Contains(constants, name)
}

// TestSmallInterfaces: observers of schemas have a method per event, and handle is what the file sink does to an open
// file.
func TestSmallInterfaces(t *testing.T) {
	tolerated := map[string]bool{
		"internal/app/destination/destination.go Observer": true, "internal/app/destination/destination.go schemasObserver": true,
		"internal/format/registry/schemas.go Observer": true, "internal/sink/file/log.go handle": true,
	}
	for _, s := range sources(t) {
		if !s.ofProduct() {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			named, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			i, ok := named.Type.(*ast.InterfaceType)
			if ok && i.Methods.NumFields() > mostMethods && !tolerated[s.at(named.Name.Name)] {
				t.Errorf("%s: %s has %d methods; want %d at most", s.set.Position(i.Pos()), named.Name.Name, i.Methods.NumFields(), mostMethods)
			}
			return true
		})
	}
}
