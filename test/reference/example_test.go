package reference

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/config"
)

// TestTheExampleHasEveryKey, as its first line and the reference say.
func TestTheExampleHasEveryKey(t *testing.T) {
	example, err := os.ReadFile("../../deploy/config.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range Keys() {
		name := k.Path[strings.LastIndexByte(k.Path, '.')+1:]
		if name = strings.TrimSuffix(name, "[]"); !strings.Contains(string(example), name+":") {
			t.Errorf("deploy/config.example.yaml lacks %s", k.Path)
		}
	}
}

// TestEachKeyHasASentence, and each sentence a key.
func TestEachKeyHasASentence(t *testing.T) {
	left := sentences()
	var look func(of reflect.Type)
	look = func(of reflect.Type) {
		for _, f := range fieldsOf(of) {
			if f.below() != nil {
				look(f.below())
			}
			if sentences()[f.owner][f.name] == "" {
				t.Errorf("sentences.yaml says nothing of %s.%s", f.owner, f.name)
			}
			delete(left[f.owner], f.name)
		}
	}
	look(reflect.TypeFor[config.Config]())
	for owner, keys := range left {
		for name := range keys {
			t.Errorf("sentences.yaml speaks of %s.%s, which is no key", owner, name)
		}
	}
}
