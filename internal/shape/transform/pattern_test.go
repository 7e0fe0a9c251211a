package transform

import (
	"path"
	"strings"
	"testing"
)

// TestI9PatternsOfNamesAreNotPaths: a name of a variable may have slashes in it, and * and ? stand for these, too.
func TestI9PatternsOfNamesAreNotPaths(t *testing.T) {
	names := []string{
		"", "PASS", "PASSWORD", "DB_PASS", "P", "AXB", "É", "\xff", "P^SS", "P-SS", "P]SS", strings.Repeat("X", 5000) + "PASS",
		"A/PASS", "PASS/A", "A/B", "XA/BX", "/", "P/SS", "DB/PASS", "//PASS//", "PASS\n", "A.PASS",
	}
	for _, text := range []string{
		"*PASS*", "*", "**", "PASS", "*PASS", "PASS*", "*P?SS*", "*a/b*", "*a*b*", "*é*", "db?pass", "*.pass", "(p|q)ass", "p+",
	} {
		p, err := parsePattern(text)
		must(t, err)
		upper := strings.ToUpper(text)
		for _, name := range names {
			// A letter that is in no name stands for the slash.
			want, _ := path.Match(strings.ReplaceAll(upper, "/", "Ω"), strings.ReplaceAll(name, "/", "Ω"))
			if p.matches([]byte(name)) != want {
				t.Errorf("%s matches %.20q: %t", text, name, !want)
			}
		}
	}
	for _, text := range []string{"", "*[P]ASS*", "a[", `\*`, "p]"} {
		if _, err := parsePattern(text); err == nil {
			t.Errorf("pattern %q was taken", text)
		}
	}
}
