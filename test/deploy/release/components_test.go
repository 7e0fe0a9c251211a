package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
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
	if err := cycloneDX(t).Validate(decoded(t, text)); err != nil {
		t.Errorf("the list is none that CycloneDX takes: %v", err)
	}
}

// cycloneDX is the schema that the library comes with.
func cycloneDX(t *testing.T) *jsonschema.Schema {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	for file, name := range map[string]string{"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schemax.json": "jsf-0.82.schema.json"} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "schema", file))
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

func decoded(t *testing.T, text []byte) any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return value
}
