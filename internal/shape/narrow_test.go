package shape

import (
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
)

// TestI9ASinkSeesLess: neither its object nor its before, nor what is withheld, has what its sink leaves out.
func TestI9ASinkSeesLess(t *testing.T) {
	s, failures := shape(t, Options{
		Ops: []string{"updated", "deleted"}, Filter: `object.v != "x"`, Key: transform.Key{Secret: []byte("k")},
		Rules: transform.Rules{Drop: []string{".d"}, Redact: []string{".p"}},
	})
	const whole = `{"v":"a","d":"s3cr3t","p":"s3cr3t"}`
	of := func(op change.Op, object, before, withheld string) *change.Record {
		rec := record(op, object)
		if before != "" {
			rec.Before = []byte(before)
		}
		rec.Withheld = withheld
		return rec
	}
	for what, c := range map[string]struct {
		rec      *change.Record
		filtered bool
	}{
		"an update":                  {of(change.Updated, whole, whole, ""), false},
		"a delete":                   {of(change.Deleted, whole, whole, ""), false},
		"a delete without its state": {of(change.Deleted, "", whole, ""), false},
		"what is withheld":           {of(change.Updated, whole, whole, withheldByFilter), false},
		"what cannot be read":        {of(change.Updated, "", "", change.Unreadable), false},
		"no JSON":                    {of(change.Updated, `{"p":"s3cr3t"`, `{"p":"s3cr3t"`, ""), false},
		"another operation":          {of(change.Added, whole, "", ""), true},
		"another, withheld":          {of(change.Added, whole, "", withheldByFilter), true},
		"what the filter is against": {of(change.Updated, `{"v":"x"}`, whole, ""), true},
	} {
		was, object := *c.rec, string(c.rec.Object)
		got := s.Narrowed(c.rec)
		if got.Filtered != c.filtered || !c.filtered && strings.Contains(string(got.Object)+string(got.Before), "s3cr3t") {
			t.Errorf("%s: it became %+v, object %s, before %s", what, got, got.Object, got.Before)
		}
		if got == c.rec || string(c.rec.Object) != object || c.rec.Filtered || got.ID("c") != was.ID("c") {
			t.Errorf("%s: what others share became %+v", what, c.rec)
		}
		if !c.filtered && (got.Object == nil) != (was.Object == nil) {
			t.Errorf("%s: the object is %s", what, got.Object)
		}
	}
	if len(*failures) != 3 { // of the record without an end: the filter, the object, and what was before
		t.Errorf("failures %q", *failures)
	}
	if gap := record(change.Gap, ""); s.Narrowed(gap) != gap {
		t.Error("a gap is not told")
	}
}

// TestI9TheSinksRulesOfTodayComeAfterTheResources, with a form of their own.
func TestI9TheSinksRulesOfTodayComeAfterTheResources(t *testing.T) {
	of := func(key string, sinks ...transform.Rules) *Today {
		made, err := NewToday([]Entry{{Rules: transform.Rules{Keep: []string{".a", ".b"}}}}, transform.Key{Secret: []byte(key)}, sinks...)
		must(t, err)
		return made
	}
	shared, own := of("k"), of("k", transform.Rules{Keep: []string{".b", ".c"}, Redact: []string{".b"}})
	if shared.Form == own.Form {
		t.Error("the sink's rules have no form of their own")
	}
	rec := record(change.Updated, `{"a":"s3cr3t","b":"s3cr3u","c":"s3cr3v"}`)
	rec.Before = rec.Object
	if err := own.Reshape(rec, shared.Form); err != nil || !strings.HasPrefix(string(rec.Object), `{"b":"hmac-sha256:`) || string(rec.Before) != string(rec.Object) {
		t.Errorf("object %s, before %s, %v", rec.Object, rec.Before, err)
	}
	once := string(rec.Object)
	if err := own.Reshape(rec, own.Form); err != nil || string(rec.Object) != once {
		t.Errorf("what has the form became %s, %v", rec.Object, err)
	}
}
