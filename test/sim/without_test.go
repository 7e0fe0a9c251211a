package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// without are the rules of package listener, as its doc.go names them: each with a place in the text of the line, and
// what stands there where %s says that the rule is left out.
var without = map[string]struct{ file, with, or string }{
	"known":     {"listener/follower.go", "case !i.At.After(last.At):", "case !i.At.After(last.At) && !(%s):"},
	"below":     {"listener/follower.go", "\tbelow := i.At.Below()\n", "\tbelow := i.At.Below()\n\tif %s {\n\t\tbelow = i.At\n\t}\n"},
	"gap":       {"listener/follower.go", "frames[0].From = s.lowest; s.lost {", "frames[0].From = s.lowest; %s {\n\t\t\tframes = frames[1:]\n\t\t} else if s.lost {"},
	"scope":     {"listener/follower.go", "s.lowest.After(place.At)", "(%s) != s.lowest.After(place.At)"},
	"parts":     {"listener/follower.go", "place, _ := places.Of(i.Key.Namespace)\n", "place, _ := places.Of(i.Key.Namespace)\n\tif %s {\n\t\tplace = checkpoint.Place{At: survey(places, way).lowest}\n\t}\n"},
	"torn":      {"listener/follower.go", "s.missing || s.torn:", "s.missing || s.torn && !(%s):"},
	"other":     {"listener/follower.go", "case last.Exists() && last.UID != i.UID:", "case last.Exists() && last.UID != i.UID && !(%s):"},
	"join":      {"listener/follower.go", "return !brought.After(position)", "return %s || !brought.After(position)"},
	"ahead":     {"listener/compare.go", "case o.At.After(o.Position):", "case o.At.After(o.Position) && !(%s):"},
	"another":   {"listener/compare.go", "case last.Exists() && last.UID != o.UID:", "case last.Exists() && last.UID != o.UID && !(%s):"},
	"newer":     {"listener/compare.go", "case !last.Exists(), last.At.After(list):", "case !last.Exists(), last.At.After(list) && !(%s):"},
	"frames":    {"listener/listener.go", "err != nil || !ours || !says {", "err != nil || !ours || !says || %s && item.Kind != checkpoint.Told {"},
	"recall":    {"listener/open.go", "log, whole := l.Target.(sink.Recaller)\n", "log, whole := l.Target.(sink.Recaller)\n\tif %s {\n\t\treturn nil\n\t}\n"},
	"otherwise": {"listener/open.go", "if l.tail.other || l.isBack()", "if l.tail.other && !(%s) || l.isBack()"},
	"fold":      {"checkpoint/sinkstate.go", "\treturn s.both(i, (*layer).fold)\n", "\tif %s {\n\t\treturn nil\n\t}\n\treturn s.both(i, (*layer).fold)\n"},
	"high":      {"checkpoint/fold.go", "if at.After(place.High) {", "if at.After(place.High) && !(%s) {"},
	"tombs":     {"checkpoint/fold.go", "\t\tif place.Comparison.UnderWay() {\n\t\t\tcontinue", "\t\tif place.Comparison.UnderWay() && !(%s) {\n\t\t\tcontinue"},
	"resume":    {"checkpoint/fold.go", "return c.ID != \"\" && !c.Over || c.Lost }", "return c.ID != \"\" && !c.Over && !(%s) || c.Lost }"},
}

// TestEachRuleIsNoticed leaves out each rule in turn.
func TestEachRuleIsNoticed(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the line once more, and plays thousands of worlds")
	}
	program := builtToLeaveOut(t)
	for _, rule := range slices.Sorted(maps.Keys(without)) {
		t.Run(rule, func(t *testing.T) {
			wild := "10"
			if rule == "recall" { // which few worlds need
				wild = "100"
			}
			run := exec.Command(program, "-test.run", "^TestSimulation$", "-seeds", "3000", "-wild", wild)
			run.Env = append(os.Environ(), "WITHOUT="+rule)
			said, err := run.CombinedOutput()
			at := strings.Index(string(said), "seed ")
			if err == nil || at < 0 {
				t.Fatalf("no judge has noticed: %v\n%s", err, said)
			}
			t.Logf("%.200s", said[at:])
		})
	}
}

// builtToLeaveOut is this test, of a line that leaves out the rule that its environment names.
func builtToLeaveOut(t *testing.T) (program string) {
	t.Helper()
	dir, texts, replace := t.TempDir(), map[string]string{}, map[string]string{}
	for rule, place := range without {
		path, err := filepath.Abs(filepath.Join("../../internal", place.file))
		if err != nil {
			t.Fatal(err)
		}
		if texts[path] == "" {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[path] = strings.Replace(string(text), "\nimport ", "\nimport \"os\"\nimport ", 1)
		}
		if strings.Count(texts[path], place.with) != 1 {
			t.Fatalf("%s does not have %q once", path, place.with)
		}
		texts[path] = strings.Replace(texts[path], place.with, fmt.Sprintf(place.or, fmt.Sprintf("os.Getenv(%q) == %q", "WITHOUT", rule)), 1)
	}
	write := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for path, text := range texts {
		replace[path] = write(filepath.Base(path), []byte(text))
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, "sim.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", write("overlay.json", overlay), "-o", program, ".")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return program
}
