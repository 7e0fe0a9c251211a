package schema

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommittedSchemasAreTheGenerators finds a schema that was changed by hand, or not made again.
func TestCommittedSchemasAreTheGenerators(t *testing.T) {
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("..", "..", "schema")
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, name+".json"))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("schema/%s.json is not what the generator makes (%v): run make schema", name, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name, isSchema := strings.CutSuffix(entry.Name(), ".json"); isSchema && files[name] == nil {
			t.Errorf("schema/%s is nobody's: remove it", entry.Name())
		}
	}
}

func TestSchemasNeedNoNetwork(t *testing.T) {
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if rest := strings.ReplaceAll(string(text), dialect, ""); strings.Contains(rest, "http") || !strings.Contains(rest, `"$id": "urn:kubecdc:schema:`+name+`"`) {
			t.Errorf("schema %s has an address in it, or no $id", name)
		}
	}
}
