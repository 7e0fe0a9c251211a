package locks

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLocksAreTakenInOrder holds all code to the table in DESIGN.md.
func TestLocksAreTakenInOrder(t *testing.T) {
	root := filepath.Join("..", "..")
	document, err := os.ReadFile(filepath.Join(root, "DESIGN.md"))
	if err != nil {
		t.Fatal(err)
	}
	o, err := parse(string(document))
	if err != nil {
		t.Fatal(err)
	}
	found := check(t, o, root, "./internal/...", "./cmd/...")
	for _, v := range found.violations {
		t.Error(v)
	}
	if len(found.pairs) < 20 {
		t.Errorf("only %d pairs of locks are taken together: the check sees too little", len(found.pairs))
	}
}

// TestOrderIsChecked plants violations, and what only looks like one.
func TestOrderIsChecked(t *testing.T) {
	o, err := parse("\n## Locks\n\n| 1 | `planted.House.mu` | x |\n| 2 | `Room.mu` | y |\n\nThese locks are leaves: `Key.mu`.\n\n")
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/planted/planted.go"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i, line := range strings.Split(string(text), "\n") {
		_, wanted, _ := strings.Cut(line, "// want ")
		for pair := range strings.SplitSeq(wanted, ", ") {
			if pair != "" {
				want = append(want, fmt.Sprintf("%d: %s", i+1, pair))
			}
		}
	}
	var got []string
	words := regexp.MustCompile(`planted\.go:(\d+): planted\.(\S+) is taken while planted\.(\S+) is held`)
	for _, v := range check(t, o, ".", "./testdata/planted").violations {
		m := words.FindStringSubmatch(v)
		if m == nil {
			t.Fatalf("a violation says %q", v)
		}
		got = append(got, fmt.Sprintf("%s: %s under %s", m[1], m[2], m[3]))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func check(t *testing.T, o *order, dir string, patterns ...string) *findings {
	t.Helper()
	p, err := load(dir, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	return follow(p, o)
}

func TestDocumentWithoutAnOrderIsRefused(t *testing.T) {
	for _, document := range []string{"", "\n## Locks\n\nNone.\n", "\n## Locks\n\n| 1 | `a.B.mu` |\n"} {
		if _, err := parse(document); err == nil {
			t.Errorf("no error of %q", document)
		}
	}
}
