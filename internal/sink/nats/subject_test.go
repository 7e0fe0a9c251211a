package nats

import (
	"slices"
	"strings"
	"testing"
)

// FuzzSubject compares the quick check with the slow rule: no token is empty or a wildcard, no byte is a control or
// space.
func FuzzSubject(f *testing.F) {
	for _, text := range []string{"", "a", "a.b", ".a", "a.", "a..b", "*", "a.*.b", "a.>", ">.a", "a*.>b", "a b", "a.\x7f", "$KV.B.a_b=2E", "a*b", "a>"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tokens := strings.Split(text, ".")
		want := !slices.Contains(tokens, "") && !slices.Contains(tokens, "*") && !slices.Contains(tokens, ">") &&
			!strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f })
		if got := validSubject(text); got != want {
			t.Fatalf("%q: got %t, want %t", text, got, want)
		}
	})
}

func TestFiltersCoverEachOtherNever(t *testing.T) {
	for _, c := range []struct{ patterns, want []string }{
		{[]string{"k.*.*"}, []string{"k.*.*"}},
		{[]string{"k.*.*", "k.pods.*"}, []string{"k.*.*"}},
		{[]string{"k.pods.*", "k.jobs.*", "k.*.*"}, []string{"k.*.*"}},
		{[]string{"k.*.*", "audit.*", "audit.*"}, []string{"k.*.*", "audit.*"}},
		{[]string{"k.*", "k.a.*"}, []string{"k.*", "k.a.*"}},
	} {
		if got := Filters(c.patterns...); !slices.Equal(got, c.want) {
			t.Errorf("filters of %q are %q, want %q", c.patterns, got, c.want)
		}
	}
}
