package selection

import (
	"bytes"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
)

// TestI9ChangedRulesAreAnotherForm, so that what was kept before them is forgotten.
func TestI9ChangedRulesAreAnotherForm(t *testing.T) {
	secrets := change.Stream{Resource: change.Resource{Version: "v1", Name: "secrets", Kind: "Secret"}}
	form := func(r config.Resource, key string) []byte {
		form, err := FormOf(&Selected{Stream: secrets, Configured: &r}, transform.Key{Secret: []byte(key)}, &config.Config{})
		must(t, err)
		return form
	}
	if form(config.Resource{}, "k") != nil {
		t.Error("there is a form although nothing is kept")
	}
	same := form(config.Resource{Before: true}, "k")
	if len(same) == 0 || !bytes.Equal(same, form(config.Resource{Before: true, Filter: "true", Ops: []string{"added"}}, "k")) {
		t.Error("what changes no object changes the form")
	}
	for name, other := range map[string][]byte{
		"no redaction": form(config.Resource{Before: true, Redact: config.Redaction{None: true}}, "k"),
		"a path":       form(config.Resource{Before: true, Redact: config.Redaction{Paths: []string{".x"}}}, "k"),
		"a cut":        form(config.Resource{Before: true, Drop: []string{".x"}}, "k"),
		"a field":      form(config.Resource{Before: true, Only: []string{".x"}}, "k"),
		"a variable":   form(config.Resource{Before: true, RedactEnv: []string{"X"}}, "k"),
		"a kept field": form(config.Resource{Before: true, Keep: []string{config.KeepLastApplied}}, "k"),
		"another key":  form(config.Resource{Before: true}, "l"),
	} {
		if bytes.Equal(other, same) {
			t.Errorf("%s leaves the form as it was", name)
		}
	}
	if bytes.Contains(form(config.Resource{Before: true}, "planted-key"), []byte("planted-key")) {
		t.Error("the form has the key in it")
	}
}

// TestI9OtherHashesAreAnotherForm where there are some, so that no record tells of a hash that is made otherwise as of
// a change, and what is not redacted stays as it was.
func TestI9OtherHashesAreAnotherForm(t *testing.T) {
	pods := change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}
	forms := func(r config.Resource, key transform.Key) [2]string {
		r.Before = true
		s := &Selected{Stream: pods, Configured: &r}
		kept, err := FormOf(s, key, &config.Config{})
		today, todayErr := TodayOf(s, key)
		if err != nil || todayErr != nil {
			t.Fatal(err, todayErr)
		}
		return [2]string{string(kept), today.Form}
	}
	keys := []transform.Key{{Secret: []byte("k")}, {Secret: []byte("k"), Comparable: true}, {Secret: []byte("k"), Cluster: "another"}}
	for what, c := range map[string]struct {
		r    config.Resource
		same bool
	}{
		"nothing": {config.Resource{}, true}, "a cut": {config.Resource{Drop: []string{".x"}}, true},
		"a path": {config.Resource{Redact: config.Redaction{Paths: []string{".x"}}}, false}, "a variable": {config.Resource{RedactEnv: []string{"X"}}, false},
		"the last applied": {config.Resource{Keep: []string{config.KeepLastApplied}}, true}, "a cut in it": {config.Resource{Keep: []string{config.KeepLastApplied}, Drop: []string{".x"}}, false},
	} {
		one := forms(c.r, keys[0])
		for _, key := range keys[1:] {
			for i, other := range forms(c.r, key) {
				if (other == one[i]) != c.same {
					t.Errorf("%s, form %d by %+v: same %t, want %t", what, i, key, other == one[i], c.same)
				}
			}
		}
	}
}

func TestOldObjectNeedsBeforeAndTheErrorSaysWhere(t *testing.T) {
	r := &config.Resource{Name: "pods", Filter: "oldObject == null"}
	const want = `resource "pods": compile filter: it uses oldObject, but these objects are not kept: add before: true`
	if err := checkShape(r); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	r.Before = true
	if err := checkShape(r); err != nil {
		t.Error(err)
	}
}
