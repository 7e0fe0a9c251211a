package transform

import (
	"path"
	"strings"
	"testing"
)

func TestI9PatternsMatchAsPathsDo(t *testing.T) {
	for _, text := range []string{"*PASS*", "*", "**", "PASS", "*PASS", "PASS*", "*P?SS*", "*[P]ASS*", `*\P*`, "*a/b*", "*a*b*", "*é*"} {
		p, err := parsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"", "PASS", "PASSWORD", "DB_PASS", "A/PASS", "PASS/A", "A/B", "XA/BX", "AXB", "É", "P", "\xff", strings.Repeat("X", 5000) + "PASS"} {
			if want, _ := path.Match(strings.ToUpper(text), name); p.matches([]byte(name)) != want {
				t.Errorf("%s matches %.20s: %t", text, name, !want)
			}
		}
	}
}
