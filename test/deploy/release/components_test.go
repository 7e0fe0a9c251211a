package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// lookAtComponents compares the list with the binary, and with the schema of CycloneDX.
func lookAtComponents(t *testing.T, binary, list string) {
	t.Helper()
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	var read cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&read); err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, one := range *read.Components {
		listed[one.Name+" "+one.Version] = true
	}
	for _, module := range info.Deps {
		if !listed[module.Path+" "+module.Version] {
			t.Errorf("%s %s is in the binary, and not in the list", module.Path, module.Version)
		}
	}
	if len(listed) != len(info.Deps)+1 || !listed["std "+info.GoVersion] || len(info.Deps) < 20 {
		t.Errorf("listed are %d components, and the binary has %d modules and Go's own", len(listed), len(info.Deps))
	}
	lookAtLicenses(t, *read.Components)
	if err := cycloneDX(t).Validate(decoded(t, text)); err != nil {
		t.Errorf("the list is none that CycloneDX takes: %v", err)
	}
}

// lookAtLicenses wants a license of each component, and the right ones of some that people have read.
func lookAtLicenses(t *testing.T, all []cdx.Component) {
	t.Helper()
	found := map[string]string{}
	for _, one := range all {
		if one.Licenses == nil || len(*one.Licenses) != 1 {
			t.Errorf("%s has the licenses %v, want one id or expression", one.Name, one.Licenses)
			continue
		}
		under := (*one.Licenses)[0]
		if found[one.Name] = under.Expression; under.License != nil {
			found[one.Name] = under.License.ID // the schema knows which there are
		}
	}
	for name, want := range map[string]string{
		"std": "BSD-3-Clause", "k8s.io/client-go": "Apache-2.0", "github.com/segmentio/kafka-go": "MIT", "github.com/spf13/cobra": "Apache-2.0",
		"github.com/davecgh/go-spew": "ISC", "github.com/google/cel-go": "Apache-2.0 AND BSD-3-Clause", "golang.org/x/sys": "BSD-3-Clause",
	} {
		if found[name] != want {
			t.Errorf("%s has the license %q, want %q", name, found[name], want)
		}
	}
}

// TestAModuleWithoutAKnownLicenseIsRefused: a person must look.
func TestAModuleWithoutAKnownLicenseIsRefused(t *testing.T) {
	for want, files := range map[string]map[string]string{
		"has no license file":             {"README.md": "MIT"},
		"is no license that licensecheck": {"COPYING": "Do as you like, but tell nobody."},
	} {
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		known := &licenses{found: map[string][]string{}}
		_, err := known.of(&debug.Module{Path: "example.com/m", Version: "v1.0.0"}, map[string]string{"example.com/m": dir})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "module example.com/m v1.0.0") {
			t.Errorf("%v, want %q and the module", err, want)
		}
	}
}

// cycloneDX is the schema that the library comes with.
func cycloneDX(t *testing.T) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	for file, name := range map[string]string{"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schemax.json": "jsf-0.82.schema.json"} {
		text, err := os.ReadFile(filepath.Join(schemas(t), file))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiler.AddResource("http://cyclonedx.org/schema/"+name, decoded(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := compiler.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// schemas is the library's directory of them.
func schemas(t *testing.T) string {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "schema")
}

func decoded(t *testing.T, text []byte) any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return value
}
