package config

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"sigs.k8s.io/yaml"
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

// same compares a value as YAML with the content of a file, and writes the file instead where UPDATE_GOLDEN is set.
func same(t *testing.T, value any, path string) {
	t.Helper()
	have, err := yaml.Marshal(value)
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

// must ends the test where there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
