package config

import (
	"os"
	"strings"
	"testing"
)

// TestTheExampleHasEveryKey, as its first line and the reference say.
func TestTheExampleHasEveryKey(t *testing.T) {
	example, err := os.ReadFile("../../deploy/config.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range describe("", new(Config).keys()) {
		name := k.Path[strings.LastIndexByte(k.Path, '.')+1:]
		if name = strings.TrimSuffix(name, "[]"); !strings.Contains(string(example), name+":") {
			t.Errorf("deploy/config.example.yaml lacks %s", k.Path)
		}
	}
}
