package encode

import (
	"encoding/json"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/test/objects"
)

// plainLabel is the obvious way: the object is decoded as a whole.
func plainLabel(key string, text []byte) string {
	var object map[string]any
	if json.Unmarshal(text, &object) != nil {
		return ""
	}
	metadata, _ := object["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	value, _ := labels[key].(string)
	return value
}

func compareLabels(t *testing.T, text []byte) {
	t.Helper()
	var object any
	if err := json.Unmarshal(text, &object); err != nil && json.Valid(text) {
		return // a number that is too large: a label is no less there
	}
	for _, key := range []string{"app", "a", "env", "", "\ufffd", "é", "app.kubernetes.io/name", "a\"", "S"} {
		if got, want := label(key, &change.Record{Op: change.Updated, Object: text}), plainLabel(key, text); got != want {
			t.Fatalf("label %q of %.500q is %q, want %q", key, text, got, want)
		}
	}
}

func TestLabelsAreThoseOfTheObject(t *testing.T) {
	kinds, err := objects.Kinds()
	if err != nil || len(kinds) < 100 {
		t.Fatalf("%d kinds, %v", len(kinds), err)
	}
	for _, object := range kinds {
		compareLabels(t, object)
	}
}

// spelled has the label app=shop in all ways that mean the same.
func spelled() map[string]string {
	return map[string]string{
		"plain":            `{"metadata":{"labels":{"app":"shop"}}}`,
		"escapes":          `{"m\u0065tadata":{"l\u0061bels":{"\u0061pp":"sh\u006fp"}}}`,
		"duplicate keys":   `{"metadata":{"labels":{"app":"x"}},"metadata":{"labels":{"app":"y"},"labels":{"app":"z","app":"shop"}}}`,
		"order":            `{"spec":{"metadata":{"labels":{"app":"x"}}},"metadata":{"annotations":{"app":"x"},"labels":{"b":"c","app":"shop"}}}`,
		"white space":      " {\n\"metadata\" : {\t\"labels\" : {\r\"app\" : \"shop\" } } } ",
		"case of the keys": `{"Metadata":{"labels":{"app":"x"}},"metadata":{"Labels":{"app":"x"},"labels":{"APP":"x","app":"shop"}}}`,
		"other forms":      `{"metadata":{"labels":{"n":1,"o":{"app":"x"},"app":"shop"}}}`,
	}
}

// TestNoSpellingMovesAnObjectToAnotherTopic: a label is where a reader of the JSON finds it.
func TestNoSpellingMovesAnObjectToAnotherTopic(t *testing.T) {
	for how, object := range spelled() {
		compareLabels(t, []byte(object))
		if got := label("app", &change.Record{Op: change.Updated, Object: []byte(object)}); got != "shop" {
			t.Errorf("%s: it is %q", how, got)
		}
	}
	for _, object := range []string{`{"metadata":{"labels":{"app":1}}}`, `{"metadata":{"labels":"app"}}`, `{"metadata":[]}`, `[]`, `{"metadata":{"labels":{"app":"shop"}}`, ``} {
		if got := label("app", &change.Record{Op: change.Updated, Object: []byte(object)}); got != "" {
			t.Errorf("%s has the label %q", object, got)
		}
	}
}

func FuzzLabel(f *testing.F) {
	for _, object := range spelled() {
		f.Add([]byte(object))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		compareLabels(t, text)
		compareLabels(t, objects.Shaped(text))
	})
}
