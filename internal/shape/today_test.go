package shape

import (
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
)

func today(t *testing.T, rules transform.Rules, key string) *Today {
	t.Helper()
	made, err := NewToday([]Entry{{Rules: rules}}, transform.Key{Secret: []byte(key)})
	must(t, err)
	return made
}

// TestI9WhatWasShapedOtherwiseIsShapedAgain, and what was not stays: hashes of the same key, too.
func TestI9WhatWasShapedOtherwiseIsShapedAgain(t *testing.T) {
	one, two := transform.Rules{Redact: []string{".a"}}, transform.Rules{Redact: []string{".a", ".b"}, Drop: []string{".c"}}
	before, now := today(t, one, "key"), today(t, two, "key")
	told := func(of *Today, form, object string) string {
		t.Helper()
		rec := record(change.Updated, object)
		rec.Before = rec.Object
		must(t, of.Reshape(rec, form))
		if string(rec.Before) != string(rec.Object) {
			t.Errorf("before is %s, the object %s", rec.Before, rec.Object)
		}
		return string(rec.Object)
	}
	shaped := told(before, "", `{"a":"s3cr3t","b":"s3cr3u","c":1}`)
	if strings.Contains(shaped, "s3cr3t") || !strings.Contains(shaped, "s3cr3u") {
		t.Fatalf("shaped is %s", shaped)
	}
	if got := told(before, before.Form, shaped); got != shaped {
		t.Errorf("what has today's form became %s", got)
	}
	hash := shaped[:strings.Index(shaped, ",")]
	if got := told(now, before.Form, shaped); strings.Contains(got, "s3cr3u") || strings.Contains(got, `"c"`) || !strings.HasPrefix(got, hash) {
		t.Errorf("with the same key it became %s", got)
	}
	for name, form := range map[string]string{"another key": today(t, one, "other").Form, "an unknown form": ""} {
		if got := told(now, form, shaped); strings.Contains(got, "s3cr3u") || strings.HasPrefix(got, hash) {
			t.Errorf("of %s it became %s", name, got)
		}
	}
	if bare := today(t, transform.Rules{}, "key"); told(bare, "", shaped) != shaped || bare.Form == now.Form || before.Form == now.Form {
		t.Error("forms do not tell rules apart")
	}
	broken := record(change.Updated, `{"a":"s3cr3t"`)
	if err := now.Reshape(broken, ""); err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("what is no JSON gives %v", err)
	}
}
