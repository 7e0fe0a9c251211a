package listener

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// rules of the package: an expression of a file, between the texts around it, and what is in its place where the rule
// is taken out.
var rules = map[string]struct{ file, before, with, after, without string }{
	"known":    {"follower.go", "case ", "!i.At.After(last.At)", ":", "false"},
	"below":    {"follower.go", "below := ", "i.At.Below()", "", "i.At"},
	"gap":      {"follower.go", "f.frame(way, ", "checkpoint.Gap", ", server.Now", "checkpoint.Begin"},
	"scope":    {"follower.go", "", "s.lowest.After(place.At)", "", "place.At.After(s.lowest)"},
	"parts":    {"follower.go", "place, _ := ", "places.Of", "(i.Key.Namespace)\n\tif", lowestForAll},
	"torn":     {"follower.go", "s.missing || ", "s.torn", ":", "false"},
	"other":    {"follower.go", "case ", "last.Exists() && last.UID != i.UID", ":", "false"},
	"ahead":    {"compare.go", "case ", "o.At.After(o.Position)", ":", "false"},
	"another":  {"compare.go", "case ", "last.Exists() && last.UID != o.UID", ":", "false"},
	"suspects": {"compare.go", "case ", "newest.After(position)", ":", "false"},
	"newer":    {"compare.go", "case !last.Exists(), ", "last.At.After(oldest)", ":", "false"},
	"high":     {"../checkpoint/fold.go", "if ", "at.After(place.High)", " {", "false"},
	"tombs":    {"../checkpoint/fold.go", "\t\tif ", "place.Comparison.UnderWay()", " {", "false"},
}

const lowestForAll = "func(string) (checkpoint.Place, bool) { return checkpoint.Place{At: survey(places, way).lowest}, true }"

// unlessText is added to each package that has rules.
const unlessText = `package %s

import "os"

func unless[T any](rule string, with, without T) T {
	if os.Getenv("WITHOUT_RULE") == rule {
		return without
	}
	return with
}
`

// played are the rules that the world itself plays for whoever carries items to and fro.
var played = []string{"fold", "frames", "lowest", "resume", "join", "recall", "order", "spooltail", "otherwise"}

// TestEachRuleIsNoticed takes out each rule in turn.
func TestEachRuleIsNoticed(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the package anew")
	}
	program := builtWithRules(t)
	for rule := range rules {
		t.Run(rule, func(t *testing.T) { noticed(t, "WITHOUT_RULE="+rule, program) })
	}
	self, err := os.Executable()
	must(t, err)
	for _, rule := range played {
		t.Run(rule, func(t *testing.T) { noticed(t, "", self, "-without", rule) })
	}
}

// noticed fails unless the judge does.
func noticed(t *testing.T, environment, program string, args ...string) {
	t.Helper()
	run := exec.Command(program, append([]string{"-test.run", "TestWorldsHaveNoViolation", "-worlds", "1000"}, args...)...)
	run.Env = append(os.Environ(), environment)
	said, err := run.CombinedOutput()
	at := strings.Index(string(said), "world ")
	if err == nil || at < 0 {
		t.Fatalf("the judge has not noticed in 1,000 worlds: %v\n%s", err, said)
	}
	t.Logf("%.200s", strings.TrimSpace(string(said[at:])))
}

// builtWithRules is this test with packages that leave out the rule which the environment names.
func builtWithRules(t *testing.T) (program string) {
	t.Helper()
	dir := t.TempDir()
	replaced := map[string]string{}
	put := func(file, text string) {
		original, err := filepath.Abs(file)
		must(t, err)
		replaced[original] = filepath.Join(dir, strings.ReplaceAll(original, string(filepath.Separator), "_"))
		must(t, os.WriteFile(replaced[original], []byte(text), 0o600))
	}
	texts := map[string]string{}
	for rule, r := range rules {
		if texts[r.file] == "" {
			text, err := os.ReadFile(r.file)
			must(t, err)
			texts[r.file] = string(text)
		}
		place := r.before + r.with + r.after
		if strings.Count(texts[r.file], place) != 1 {
			t.Fatalf("%s does not have %q once", r.file, place)
		}
		either := fmt.Sprintf("%sunless(%q, %s, %s)%s", r.before, rule, r.with, r.without, r.after)
		texts[r.file] = strings.Replace(texts[r.file], place, either, 1)
	}
	for file, text := range texts {
		put(file, text)
	}
	put("unless.go", fmt.Sprintf(unlessText, "listener"))
	put("../checkpoint/unless.go", fmt.Sprintf(unlessText, "checkpoint"))
	overlay, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "worlds.test")
	replace, err := json.Marshal(map[string]any{"Replace": replaced})
	must(t, err)
	must(t, os.WriteFile(overlay, replace, 0o600))
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", program, ".")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return program
}
