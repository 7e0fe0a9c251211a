package house

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestFilesHaveFloors: a file is above those that declare what it uses, so no files of a package are in a circle. A
// method is declared where it stands.
func TestFilesHaveFloors(t *testing.T) {
	for _, pkg := range loaded(t) {
		uses, name := usesOf(pkg), strings.TrimPrefix(pkg.PkgPath, module)
		var circular []string
		for from, all := range uses {
			for to := range all {
				if uses.reaches(to, from, map[string]bool{}) {
					circular = append(circular, from+" uses "+to)
				}
			}
		}
		if len(circular) > 0 {
			slices.Sort(circular)
			t.Errorf("%s: files are in a circle: %s: move a declaration to the file that it belongs to", name, strings.Join(circular, ", "))
		}
	}
}

// loaded are the packages of the program. Of what they import only the types are read.
func loaded(t *testing.T) []*packages.Package {
	t.Helper()
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedExportFile |
		packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo
	found, err := packages.Load(&packages.Config{Dir: filepath.Join("..", ".."), Mode: mode}, "./internal/...", "./cmd/...")
	if err != nil || len(found) < 50 {
		t.Fatalf("load the packages: %d, %v", len(found), err)
	}
	for _, pkg := range found {
		if len(pkg.Errors) > 0 {
			t.Fatalf("load %s: %v", pkg.PkgPath, pkg.Errors)
		}
	}
	return found
}

// uses are the files of a package, each with the others that declare what it uses.
type uses map[string]map[string]bool

func usesOf(pkg *packages.Package) uses {
	u := uses{}
	for at, used := range pkg.TypesInfo.Uses {
		from, to := filepath.Base(pkg.Fset.File(at.Pos()).Name()), ""
		if used.Pkg() == pkg.Types && used.Pos().IsValid() {
			to = filepath.Base(pkg.Fset.File(used.Pos()).Name())
		}
		if u[from] == nil {
			u[from] = map[string]bool{}
		}
		if to != "" && to != from {
			u[from][to] = true
		}
	}
	return u
}

// reaches says whether the one file uses the other, be it by further ones.
func (u uses) reaches(from, to string, seen map[string]bool) bool {
	if from == to || seen[from] {
		return from == to
	}
	seen[from] = true
	for next := range u[from] {
		if u.reaches(next, to, seen) {
			return true
		}
	}
	return false
}
