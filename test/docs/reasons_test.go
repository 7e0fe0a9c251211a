package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestTheTableOfReasonsHasAll, and so has the list that the schemas are made of.
func TestTheTableOfReasonsHasAll(t *testing.T) {
	table := string(contentOf(t, "docs/formats.md"))
	declared := regexp.MustCompile(`\bReason += "(\w+)"`).FindAllSubmatch(contentOf(t, "internal/change/resource.go"), -1)
	if len(declared) != len(change.Reasons()) {
		t.Errorf("%d reasons are declared, and change.Reasons has %d", len(declared), len(change.Reasons()))
	}
	for _, m := range declared {
		reason := string(m[1])
		if !slices.Contains(change.Reasons(), change.Reason(reason)) {
			t.Errorf("change.Reasons lacks %s", reason)
		}
		if !strings.Contains(table, "\n| `"+reason+"` |") {
			t.Errorf("docs/formats.md has no row of reason %s", reason)
		}
	}
}
