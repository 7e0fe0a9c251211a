package listener

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// rules of the package, each with a place in its text and what stands there where the rule is taken out.
var rules = map[string]struct{ file, with, without string }{
	"known":    {"follower.go", "case !i.At.After(last.At):", "case false:"},
	"below":    {"follower.go", "below := i.At.Below()", "below := i.At"},
	"gap":      {"follower.go", "f.frame(way, checkpoint.Gap, server.Now", "f.frame(way, checkpoint.Begin, server.Now"},
	"scope":    {"follower.go", "s.lowest.After(place.At)", "place.At.After(s.lowest)"},
	"parts":    {"follower.go", "place, _ := places.Of(i.Key.Namespace)\n\tif", "place := checkpoint.Place{At: survey(places, way).lowest}\n\tif"},
	"torn":     {"follower.go", "s.missing || s.torn", "s.missing"},
	"other":    {"follower.go", "case last.Exists() && last.UID != i.UID:", "case false:"},
	"ahead":    {"compare.go", "case o.At.After(o.Position):", "case false:"},
	"another":  {"compare.go", "case last.Exists() && last.UID != o.UID:", "case false:"},
	"suspects": {"compare.go", "case list.After(position):", "case false:"},
	"newer":    {"compare.go", "case !last.Exists(), last.At.After(list):", "case !last.Exists():"},
	"high":     {"../checkpoint/fold.go", "if at.After(place.High) {", "if false {"},
	"tombs":    {"../checkpoint/fold.go", "\t\tif place.Comparison.UnderWay() {", "\t\tif false {"},
}

// played are the rules that the world itself plays for whoever carries items to and fro.
var played = []string{"fold", "frames", "lowest", "resume", "join", "recall", "order", "spooltail", "otherwise"}

// TestEachRuleIsNoticed takes out each rule in turn.
func TestEachRuleIsNoticed(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the package once for each rule")
	}
	for rule, place := range rules {
		t.Run(rule, func(t *testing.T) { noticed(t, builtWithout(t, place.file, place.with, place.without)) })
	}
	self, err := os.Executable()
	must(t, err)
	for _, rule := range played {
		t.Run(rule, func(t *testing.T) { noticed(t, self, "-without", rule) })
	}
}

// noticed fails unless the judge does.
func noticed(t *testing.T, program string, args ...string) {
	t.Helper()
	run := exec.Command(program, append([]string{"-test.run", "TestWorldsHaveNoViolation", "-worlds", "1000"}, args...)...)
	said, err := run.CombinedOutput()
	at := strings.Index(string(said), "world ")
	if err == nil || at < 0 {
		t.Fatalf("the judge has not noticed in 1,000 worlds: %v\n%s", err, said)
	}
	t.Logf("%.200s", strings.TrimSpace(string(said[at:])))
}

// builtWithout is this test with another text in the place of the file's.
func builtWithout(t *testing.T, file, with, without string) (program string) {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	if strings.Count(string(text), with) != 1 {
		t.Fatalf("%s does not have %q once", file, with)
	}
	dir := t.TempDir()
	original, err := filepath.Abs(file)
	must(t, err)
	changed, program, overlay := filepath.Join(dir, filepath.Base(file)), filepath.Join(dir, "worlds.test"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	must(t, err)
	for name, content := range map[string][]byte{
		changed: []byte(strings.Replace(string(text), with, without, 1)), overlay: replace,
	} {
		must(t, os.WriteFile(name, content, 0o600))
	}
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", program, ".")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return program
}
