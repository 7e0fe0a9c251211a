package nats

import (
	"slices"
	"testing"
)

func TestValidSubjects(t *testing.T) {
	for _, text := range []string{"a", "a.b", "a*.>b", "$KV.B.a_b=2E", "a*b", "a>"} {
		if !validSubject(text) {
			t.Errorf("%q is refused", text)
		}
	}
	for _, text := range []string{"", ".a", "a.", "a..b", "*", "a.*.b", "a.>", ">.a", "a b", "a.\x7f"} {
		if validSubject(text) {
			t.Errorf("%q is taken", text)
		}
	}
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
