package main

import (
	"bytes"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"
)

// TestAReleaseIsWholeAndTheSameTwice, for this machine's platform: the image is valid, the chart is one, the binary
// says its version, and the checksums are right.
func TestAReleaseIsWholeAndTheSameTwice(t *testing.T) {
	var made [2]map[string][]byte
	for i := range made {
		o := order{root: "../../..", out: filepath.Join(t.TempDir(), "out"), version: "v9.8.7", platforms: []string{"linux/" + runtime.GOARCH}}
		if err := o.make(); err != nil {
			t.Fatal(err)
		}
		made[i] = filesIn(t, o.out)
		if i == 0 {
			look(t, o.out)
		}
	}
	if len(made[0]) != 6 {
		t.Errorf("made are %d files, want an archive, its components, an image, a chart, a manifest and checksums", len(made[0]))
	}
	for name, content := range made[0] {
		if !bytes.Equal(content, made[1][name]) {
			t.Errorf("%s differs between two runs", name)
		}
	}
}

func filesIn(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := filesOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, e := range entries {
		all[e.name] = e.content
	}
	return all
}

// look opens what was made with others' programs.
func look(t *testing.T, dir string) {
	t.Helper()
	chart, err := loader.LoadFile(filepath.Join(dir, "kubecdc-9.8.7.tgz"))
	if err != nil || chart.Metadata.Version != "9.8.7" || chart.Metadata.AppVersion != "9.8.7" || chart.Validate() != nil {
		t.Errorf("the chart is %+v, %v", chart, err)
	}
	unpacked := t.TempDir()
	script := `set -e; cd ` + dir + `; sha256sum -c --quiet SHA256SUMS; mkdir ` + unpacked + `/image
tar -xf kubecdc_v9.8.7_image.oci.tar -C ` + unpacked + `/image
tar -xzf kubecdc_v9.8.7_linux_*.tar.gz -C ` + unpacked + `; ` + unpacked + `/exporter --version`
	output, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput()
	if err != nil || !strings.Contains(string(output), "v9.8.7") {
		t.Errorf("%v: %s", err, output)
	}
	var krew struct {
		Spec struct {
			Version   string
			Platforms []struct{ URI, SHA256, Bin string }
		}
	}
	files := filesIn(t, dir)
	if err := yaml.Unmarshal(files["cdc.yaml"], &krew); err != nil || krew.Spec.Version != "v9.8.7" || len(krew.Spec.Platforms) != 1 {
		t.Fatalf("krew's manifest is %s: %v", files["cdc.yaml"], err)
	}
	platform := krew.Spec.Platforms[0]
	if sum := platform.SHA256 + "  " + path.Base(platform.URI) + "\n"; platform.Bin != "exporter" || !strings.Contains(string(files["SHA256SUMS"]), sum) {
		t.Errorf("krew installs %+v, and the sums are\n%s", platform, files["SHA256SUMS"])
	}
	lookAtComponents(t, filepath.Join(unpacked, "exporter"), filepath.Join(dir, "kubecdc_v9.8.7_linux_"+runtime.GOARCH+".cdx.json"))
	index, err := layout.ImageIndexFromPath(filepath.Join(unpacked, "image"))
	if err == nil {
		err = validate.Index(index)
	}
	if err != nil {
		t.Errorf("the image is not valid: %v", err)
	}
}

// TestAReleaseIsRefused without a version, and into a directory that has something.
func TestAReleaseIsRefused(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ version, out, want string }{
		{"devel", t.TempDir(), `version "devel": want one such as v1.2.3: set VERSION`},
		{"v1.2", t.TempDir(), `version "v1.2": want one such as v1.2.3`},
		{"v1.2.3", full, "has files already: remove them"},
	} {
		o := order{root: "../../..", out: c.out, version: c.version}
		if err := o.make(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s into %s: %v, want %s", c.version, c.out, err, c.want)
		}
	}
}
