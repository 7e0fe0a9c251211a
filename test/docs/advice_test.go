package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/test/reference"
)

// TestAdviceNamesKeysThatThereAre reads every text of the program, and looks for each key of the configuration that one
// names, with its section.
func TestAdviceNamesKeysThatThereAre(t *testing.T) {
	keys := configured(t)
	sections := map[string]bool{}
	for key := range keys {
		section, _, _ := strings.Cut(key, ".")
		sections[section] = true
	}
	notKeys := []string{"snapshot.begin", "snapshot.end", "audit.md", "audit.k8s.io"} // operations, a page, a group
	named := regexp.MustCompile(`[a-z][A-Za-z0-9]*(\.[a-z][A-Za-z0-9]*)+`)
	seen := map[string]bool{}
	for _, text := range texts(t, "internal", "cmd") {
		for _, at := range named.FindAllStringIndex(text.value, -1) {
			key := text.value[at[0]:at[1]]
			section, _, _ := strings.Cut(key, ".")
			if at[0] > 0 && strings.ContainsAny(text.value[at[0]-1:at[0]], "./$-_") || !sections[section] || slices.Contains(notKeys, key) {
				continue
			}
			seen[key] = true
			if !keys[key] {
				t.Errorf("%s: there is no key %s: %s", text.place, key, text.value)
			}
		}
	}
	if len(seen) < 50 {
		t.Errorf("the texts name %d keys only: %v", len(seen), seen)
	}
}

// configured are the keys of the reference, as errors name them: without the list that they are in.
func configured(t *testing.T) map[string]bool {
	t.Helper()
	keys := map[string]bool{}
	for _, key := range reference.Keys() {
		name := strings.TrimPrefix(strings.TrimPrefix(key.Path, "sinks[]."), "resources[].")
		if strings.Contains(name, ".") {
			keys[name] = true
		}
	}
	if len(keys) < 100 {
		t.Fatalf("the reference has %d keys in sections", len(keys))
	}
	return keys
}

// text is one of the program's.
type text struct{ place, value string }

// texts are the literals of the code below the directories, but for tests and imports. Those that are joined are one.
func texts(t *testing.T, dirs ...string) []text {
	t.Helper()
	var all []text
	files := token.NewFileSet()
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join(root, dir), func(name string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if _, imports := n.(*ast.ImportSpec); imports {
					return false
				}
				expression, isExpression := n.(ast.Expr)
				if value, isText := joined(expression); isExpression && isText {
					all = append(all, text{files.Position(n.Pos()).String(), value})
					return false
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// joined is the value of a literal, or of several with + between them.
func joined(e ast.Expr) (value string, isText bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		value, err := strconv.Unquote(e.Value)
		return value, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, isLeft := joined(e.X)
		right, isRight := joined(e.Y)
		return left + right, isLeft && isRight
	}
	return "", false
}
