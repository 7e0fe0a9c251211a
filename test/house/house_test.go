// Package house holds the rules of the house as tests: who may import whom, and what no package may do.
package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/kubecdc/kubecdc/"

// arrows are testdata/arrows.txt: what each package may import of this module.
func arrows(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "arrows.txt"))
	if err != nil {
		t.Fatal(err)
	}
	plan, importer := map[string][]string{}, "#"
	for line := range strings.Lines(string(text)) {
		if name, rest, found := strings.Cut(line, ":"); found {
			importer, line = name, rest
		}
		plan[importer] = append(plan[importer], strings.Fields(line)...)
	}
	return plan
}

// core are the rooms that a record goes through, each with what is below it.
func core() []string {
	return []string{"change", "scan", "source", "fifo", "listener", "checkpoint", "pipeline", "sink"}
}

// wings are all other rooms.
func wings() []string {
	return []string{"shape", "format", "ha", "audit", "control", "observe", "config", "app"}
}

// brands are libraries that only their own packages may know.
func brands() map[string][]string {
	return map[string][]string{
		"k8s.io/client-go/tools/cache":          {"internal/source"},
		"k8s.io/client-go/kubernetes":           {"test/", "bench"}, // with the code of every type of Kubernetes
		"k8s.io/client-go/discovery":            {"test/", "bench"}, // the same
		"k8s.io/client-go/restmapper":           {"test/", "bench"}, // the same
		"k8s.io/client-go/tools/leaderelection": {"test/", "bench"}, // the same
		"k8s.io/":                               {"internal/source", "internal/ha/election", "internal/shape/filter", "internal/app/selection", "internal/app", "test/", "bench"},
		"github.com/google/cel-go/":             {"internal/shape/filter"},
		"github.com/prometheus/":                {"internal/observe/telemetry", "test/", "bench"},
		"github.com/segmentio/kafka-go":         {"internal/sink/kafka", "test/", "bench"},
		"github.com/nats-io/":                   {"internal/sink/nats", "test/", "bench"},
		"github.com/twmb/":                      {"internal/format/registry", "internal/format/typed", "internal/sink/kafka", "test/", "bench"},
		"github.com/cockroachdb/pebble/":        {"internal/checkpoint"},
		"github.com/evanphx/":                   {"internal/observe/console"},
		"github.com/spf13/cobra":                {"cmd/"},
	}
}

// pure packages have no clock, no goroutine and no I/O.
func pure() []string {
	return []string{"internal/change", "internal/fifo", "internal/format/encode", "internal/format/decode", "internal/observe/verify", "internal/format/openapi", "internal/scan", "internal/scan/slab", "internal/shape/transform", "internal/format/typed",
		"internal/scan/delta", "internal/listener/chain", "internal/shape/involved", "internal/audit", "internal/sink/kafka/batch", "internal/sink/signal", "internal/config/usage"}
}

// source is one parsed Go file, tests left out.
type source struct {
	dir, name string
	file      *ast.File
	set       *token.FileSet
}

func sources(t *testing.T) []source {
	t.Helper()
	root := filepath.Join("..", "..")
	var all []source
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil || strings.HasPrefix(entry.Name(), ".") {
				return filepath.SkipDir // another module
			}
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		dir, _ := filepath.Rel(root, filepath.Dir(path))
		all = append(all, source{dir: filepath.ToSlash(dir), name: path, file: file, set: set})
		return nil
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("read the sources: %d files, %v", len(all), err)
	}
	return all
}

func (s source) imports() []string {
	var paths []string
	for _, spec := range s.file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		paths = append(paths, path)
	}
	return paths
}

func TestArrowsPointAtChange(t *testing.T) {
	plan := arrows(t)
	for _, s := range sources(t) {
		if !strings.HasPrefix(s.dir, "internal/") && !strings.HasPrefix(s.dir, "cmd/") {
			continue
		}
		allowed, known := plan[s.dir]
		if !known && !strings.HasPrefix(s.dir, "internal/sink/nats/") {
			t.Errorf("%s: package %s is not in the plan", s.name, s.dir)
		}
		for _, path := range s.imports() {
			if inner, ours := strings.CutPrefix(path, module+"internal/"); ours && !slices.Contains(allowed, inner) {
				t.Errorf("%s imports %s, which arrows.txt does not have", s.name, inner)
			}
		}
	}
}

// TestTheCoreImportsNoWing: and there is no other room.
func TestTheCoreImportsNoWing(t *testing.T) {
	roomOf := func(dir string) string {
		room, _, _ := strings.Cut(strings.TrimPrefix(dir, "internal/"), "/")
		return room
	}
	for _, s := range sources(t) {
		if !strings.HasPrefix(s.dir, "internal/") {
			continue
		}
		isCore := slices.Contains(core(), roomOf(s.dir))
		if !isCore && !slices.Contains(wings(), roomOf(s.dir)) {
			t.Errorf("%s is in no room of the house", s.dir)
		}
		for _, path := range s.imports() {
			if dir, ours := strings.CutPrefix(path, module); ours && isCore && !slices.Contains(core(), roomOf(dir)) {
				t.Errorf("%s is of the core, and imports %s", s.name, dir)
			}
		}
	}
}

func TestOnlyTheirPackagesKnowBrands(t *testing.T) {
	for _, s := range sources(t) {
		for _, path := range s.imports() {
			for brand, homes := range brands() {
				at := func(home string) bool { return strings.HasPrefix(s.dir+"/", strings.TrimSuffix(home, "/")+"/") }
				if strings.HasPrefix(path, brand) && !slices.ContainsFunc(homes, at) {
					t.Errorf("%s imports %s; only %s may", s.name, path, strings.Join(homes, ", "))
				}
			}
		}
	}
}

func TestPureCoreHasNoClockAndNoGoroutine(t *testing.T) {
	forbidden := []string{"os", "io", "net", "net/http", "sync", "context"}
	for _, s := range sources(t) {
		if !slices.Contains(pure(), s.dir) {
			continue
		}
		for _, path := range s.imports() {
			if slices.Contains(forbidden, path) && (s.dir != "internal/format/encode" || path != "context") { // of a format's I/O
				t.Errorf("%s imports %s; the package is pure", s.name, path)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if _, isGo := n.(*ast.GoStmt); isGo {
				t.Errorf("%s: a goroutine in a pure package", s.set.Position(n.Pos()))
			}
			if isCall(n, "time", "Now") || isCall(n, "time", "Sleep") {
				t.Errorf("%s: a clock in a pure package", s.set.Position(n.Pos()))
			}
			return true
		})
	}
}

func TestNoInitAndNoBackgroundContext(t *testing.T) {
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if f, ok := n.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: init()", s.set.Position(n.Pos()))
			}
			if isCall(n, "context", "Background") && s.file.Name.Name != "main" && strings.HasPrefix(s.dir, "internal/") {
				t.Errorf("%s: context.Background outside main", s.set.Position(n.Pos()))
			}
			return true
		})
	}
}

func isCall(n ast.Node, pkg, name string) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	ident, ok := selector.X.(*ast.Ident)
	return ok && ident.Name == pkg && selector.Sel.Name == name
}

// isApp says whether the package is the assembly, or a room of it.
func isApp(dir string) bool { return strings.HasPrefix(dir+"/", "internal/app/") }

// TestCommandsWriteThroughTheScreen: whatever a command prints may hold names that others chose.
func TestCommandsWriteThroughTheScreen(t *testing.T) {
	for _, s := range sources(t) {
		if s.dir != "cmd/exporter" && !isApp(s.dir) && s.dir != "internal/observe/console" || filepath.Base(s.name) == "output.go" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			for _, past := range []string{"OutOrStdout", "ErrOrStderr", "OutOrStderr", "Print", "Println", "Printf", "PrintErr", "PrintErrln", "PrintErrf"} {
				if isMethodCall(n, past) {
					t.Errorf("%s: %s writes past the screen: use stdout and stderr of output.go", s.set.Position(n.Pos()), past)
				}
			}
			return true
		})
	}
}

// TestOneFileKnowsWhichSinksThereAre: what there is to know of a kind of sinks is in a file of its own, and one
// registers them.
func TestOneFileKnowsWhichSinksThereAre(t *testing.T) {
	homes := []string{
		"internal/app/destination/kinds.go", "internal/app/destination/kafka.go", "internal/app/destination/kafkatable.go",
		"internal/app/destination/signalhandler.go", "internal/app/destination/nats.go", "internal/app/destination/file.go",
		"cmd/exporter/dev.go", // a server of NATS is what it is about
	}
	for _, s := range sources(t) {
		if !isApp(s.dir) && s.dir != "cmd/exporter" || slices.Contains(homes, s.dir+"/"+filepath.Base(s.name)) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if ok && slices.Contains([]string{"Kafka", "NATS", "KindKafka", "KindNATS", "KindFile"}, selector.Sel.Name) {
				t.Errorf("%s: %s: what depends on the kind of a sink belongs to its destination", s.set.Position(n.Pos()), selector.Sel.Name)
			}
			return true
		})
		for _, path := range s.imports() {
			of, below := strings.CutPrefix(path, module+"internal/sink/")
			if below && !slices.Contains([]string{"deadletter", "signal"}, of) { // which are of no kind
				t.Errorf("%s imports %s", s.name, path)
			}
		}
	}
}

// TestGoroutinesAreListed holds DESIGN.md to the truth: it names every file that starts a goroutine.
func TestGoroutinesAreListed(t *testing.T) {
	design, err := os.ReadFile(filepath.Join("..", "..", "DESIGN.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sources(t) {
		if !strings.HasPrefix(s.dir, "internal/") && !strings.HasPrefix(s.dir, "cmd/") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			_, isGo := n.(*ast.GoStmt)
			if file := s.dir + "/" + filepath.Base(s.name); (isGo || isMethodCall(n, "Go")) && !strings.Contains(string(design), file) {
				t.Errorf("%s: a goroutine starts here, and DESIGN.md does not name %s", s.set.Position(n.Pos()), file)
			}
			return true
		})
	}
}

// isMethodCall finds errgroup.Group.Go and sync.WaitGroup.Go.
func isMethodCall(n ast.Node, name string) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == name
}
