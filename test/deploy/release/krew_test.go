package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestKrewInstallsWhatTheReleaseHas: each platform has the sum of its archive.
func TestKrewInstallsWhatTheReleaseHas(t *testing.T) {
	o := order{out: t.TempDir(), version: "v9.8.7"}
	binaries := []binary{{"linux", "amd64", nil}, {"darwin", "arm64", nil}}
	for _, b := range binaries {
		if err := os.WriteFile(filepath.Join(o.out, o.archiveOf(&b)), []byte(b.os), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.krew(binaries); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(o.out, "cdc.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Spec struct {
			Version   string
			Platforms []struct {
				Uri, Sha256, Bin string
				Selector         struct{ MatchLabels map[string]string }
			}
		}
	}
	if err := yaml.Unmarshal(text, &manifest); err != nil || manifest.Spec.Version != "v9.8.7" || len(manifest.Spec.Platforms) != 2 {
		t.Fatalf("the manifest is %s: %v", text, err)
	}
	for i, p := range manifest.Spec.Platforms {
		want := fmt.Sprintf("%x", sha256.Sum256([]byte(binaries[i].os)))
		if p.Sha256 != want || p.Selector.MatchLabels["os"] != binaries[i].os || filepath.Base(p.Uri) != o.archiveOf(&binaries[i]) {
			t.Errorf("platform %+v, want the sum %s", p, want)
		}
	}
}
