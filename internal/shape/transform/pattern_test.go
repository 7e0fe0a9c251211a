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
		"*PASS*", "*", "**", "PASS", "*PASS", "PASS*", "*P?SS*", "*[P]ASS*", `*\P*`, "*a/b*", "*a*b*", "*é*", "db?pass", "db[/_]pass", "p[^a]ss", "p[!-0]ss",
		`p[\]\-^]ss`, "*.pass", "(p|q)ass", "p+", `\*`, "p[[:alpha:]]ss",
	} {
		p, err := parsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		upper := strings.ToUpper(text)
		for _, name := range names {
			if strings.ContainsRune(name, '/') && strings.ContainsRune(text, '[') {
				continue // below
			}
			// A letter that is in no name stands for the slash.
			want, _ := path.Match(strings.ReplaceAll(upper, "/", "Ω"), strings.ReplaceAll(name, "/", "Ω"))
			if p.matches([]byte(name)) != want {
				t.Errorf("%s matches %.20q: %t", text, name, !want)
			}
		}
	}
	for _, c := range []struct{ text, name string }{{"*[/_]pass", "a/b/pass"}, {"*p[^x]ss", "a/p/ss"}, {"[!-0]*", "/a"}, {"*[p]ass*", "db/pass/"}} {
		if p, err := parsePattern(c.text); err != nil || !p.matches([]byte(strings.ToUpper(c.name))) {
			t.Errorf("%s does not match %s: %v", c.text, c.name, err)
		}
	}
}
