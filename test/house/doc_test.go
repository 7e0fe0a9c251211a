package house

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryPackageSaysWhatItIsInDoc: whoever opens a package finds what it does, and why so, in doc.go. Programs that
// generate a file say it in main.go.
func TestEveryPackageSaysWhatItIsInDoc(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		if !strings.HasPrefix(s.dir, "internal/") && s.dir != "cmd/exporter" || filepath.Base(s.dir) == "generate" {
			continue
		}
		isDoc := filepath.Base(s.name) == "doc.go"
		documented[s.dir] = documented[s.dir] || isDoc && s.file.Doc != nil
		if s.file.Doc != nil && !isDoc {
			t.Errorf("%s has a package comment: move it to doc.go", s.name)
		}
	}
	for dir, has := range documented {
		if !has {
			t.Errorf("%s has no doc.go with a package comment", dir)
		}
	}
	if len(documented) < 30 {
		t.Errorf("only %d packages were found", len(documented))
	}
}
