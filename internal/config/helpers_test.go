package config

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kubecdc/kubecdc/test/script"
)

func testEnv(name string) (string, bool) {
	value, found := map[string]string{
		"NATS_PASSWORD": "hunter2",
		"NATS_TOKEN":    "hunter3",
		"QUEUE":         "32Mi",
		"YAML":          "a: [b\n- c",
		"DOLLAR":        "${NATS_TOKEN}",
		"EMPTY":         "",
	}[name]
	return value, found
}

func parse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("c.yaml", []byte(text), testEnv)
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return c
}

// same compares what a configuration sets with the content of a file, and writes the file where UPDATE_GOLDEN is set.
func same(t *testing.T, c *Config, path string) {
	t.Helper()
	have, err := yaml.Marshal(show(reflect.ValueOf(c).Elem()))
	must(t, err)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		must(t, os.WriteFile(path, have, 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Equal(have, want) {
		t.Errorf("%s: have\n%s\nwant\n%s", path, have, want)
	}
}

// show is what is set, by its keys.
func show(v reflect.Value) map[string]any {
	shown := map[string]any{}
	for _, f := range fieldsOf(v.Type()) {
		value := v.FieldByIndex(f.Index)
		var inner []map[string]any
		for _, one := range f.inside("", value) {
			inner = append(inner, show(one))
		}
		switch kind := value.Kind(); {
		case value.IsZero(), (kind == reflect.Slice || kind == reflect.Map) && value.Len() == 0:
		case inner == nil:
			shown[f.name] = value.Interface()
		case kind == reflect.Slice:
			shown[f.name] = inner
		case kind == reflect.Pointer || len(inner[0]) > 0:
			shown[f.name] = inner[0]
		}
	}
	return shown
}

// wantError checks the message, and that the program can tell a wrong configuration from other failures.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want\n%s", want)
	}
	if err.Error() != want {
		t.Errorf("have\n%s\nwant\n%s", err, want)
	}
	var problems *Problems
	if !errors.As(err, &problems) || len(problems.List) == 0 {
		t.Errorf("%T is no *Problems with a list", err)
	}
}

var must = script.Must
