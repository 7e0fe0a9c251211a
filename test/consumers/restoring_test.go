package consumers

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/format/openapi"
	"github.com/kubecdc/kubecdc/internal/format/typed"
	"github.com/kubecdc/kubecdc/test/child"
	"github.com/kubecdc/kubecdc/test/objects"
	"github.com/kubecdc/kubecdc/test/python"
)

// restoring is the version of PyPI's library that restores objects.
func restoring() []string { return []string{"fastavro==1.12.1"} }

// TestOthersLibrariesRestoreObjects of every built-in kind, and of three well-known CRDs, by nothing but their schemas.
func TestOthersLibrariesRestoreObjects(t *testing.T) {
	cmd := python.Command(t, restoring(), "python/restore.py")
	var in, out, stderr bytes.Buffer
	all := typedObjects(t)
	for i, one := range all {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.schema", i))
		if err := os.WriteFile(path, one.of.Avro(), 0o600); err != nil {
			t.Fatal(err)
		}
		message, err := typed.NewEncoder(one.of).Append(nil, one.object)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&in, "{\"schema\":%q,\"value\":%q}\n", path, base64.StdEncoding.EncodeToString(message))
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, &stderr
	if err := child.Run(cmd); err != nil {
		t.Fatalf("%v: %s", err, tail(stderr.String()))
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != len(all) || len(all) < 90 {
		t.Fatalf("of %d objects there are %d", len(all), len(lines))
	}
	for i, line := range lines {
		if got, want := spelled(t, []byte(line)), spelled(t, all[i].object); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is restored as\n%.2000s, want\n%.2000s", all[i].of.Name, line, all[i].object)
		}
	}
}

// spelled is an object whose integers are as they are written. Other numbers are compared as such.
func spelled(t *testing.T, text []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		t.Fatalf("%v in %.500s", err, text)
	}
	return alike(value)
}

func alike(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, one := range v {
			v[key] = alike(one)
		}
	case []any:
		for i, one := range v {
			v[i] = alike(one)
		}
	case json.Number:
		if strings.ContainsAny(string(v), ".eE") {
			f, _ := strconv.ParseFloat(string(v), 64) // of a number that is one
			return f
		}
	}
	return value
}

type typedObject struct {
	of     *typed.Type
	object []byte
}

// typedObjects have something in each field, and something that no schema knows.
func typedObjects(t *testing.T) (all []typedObject) {
	t.Helper()
	documents, err := objects.Documents()
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := objects.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range kinds {
		var named struct{ APIVersion, Kind string }
		if err := json.Unmarshal(object, &named); err != nil {
			t.Fatal(err)
		}
		group, version, grouped := strings.Cut(named.APIVersion, "/")
		if !grouped {
			group, version = "", named.APIVersion
		}
		if of := typeOf(t, documents[named.APIVersion], group, version, named.Kind); of != nil {
			more := `,"unknown":[1.50,null,"é😀"],"spec-":{"a":9007199254740993000}}`
			all = append(all, typedObject{of, append(object[:len(object)-1:len(object)-1], more...)})
		}
	}
	return append(all, customObjects(t)...)
}

func typeOf(t *testing.T, document []byte, group, version, kind string) *typed.Type {
	t.Helper()
	if document == nil {
		return nil
	}
	parsed, err := openapi.Read(bytes.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Type(group, version, kind, openapi.Options{})
}

// customObjects are of CRDs of others.
func customObjects(t *testing.T) (all []typedObject) {
	t.Helper()
	definitions, err := objects.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range definitions {
		for version, schema := range d.Versions {
			document := fmt.Sprintf(`{"components":{"schemas":{"x":{"type":"object","properties":{"apiVersion":{"type":"string"},"spec":%s},
				"x-kubernetes-group-version-kind":[{"group":%q,"version":%q,"kind":%q}]}}}}`, inner(t, schema, "spec"), d.Group, version, d.Kind)
			of := typeOf(t, []byte(document), d.Group, version, d.Kind)
			if of == nil {
				t.Fatalf("%s %s has no type", d.Kind, version)
			}
			all = append(all, typedObject{of, []byte(`{"apiVersion":"x","spec":{"dnsNames":["a"],"duration":"2h","replicas":3,"hostnames":["a.b"],"nodeSelector":{"a":"b"},
				"rules":[{"backendRefs":[{"name":"x","port":80,"weight":1.5,"more":{}}]}],"resources":{"limits":{"cpu":1,"memory":"1Gi"}}}}`)})
		}
	}
	return all
}

func inner(t *testing.T, schema []byte, property string) []byte {
	t.Helper()
	var read struct{ Properties map[string]json.RawMessage }
	if err := json.Unmarshal(schema, &read); err != nil {
		t.Fatal(err)
	}
	return read.Properties[property]
}
