package shape

import (
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
)

// parted is the Shape of three parts: namespace bank has hashes, objects with the label team=a have no data, and the
// others go on as deletes alone.
func parted(t *testing.T) (*Shape, *[]string) {
	t.Helper()
	bank, failures := shape(t, Options{Rules: transform.Rules{Redact: []string{".data"}}, Key: transform.Key{Secret: []byte("k")}, Filter: "object.data.x != 'skip'"})
	team, _ := shape(t, Options{Rules: transform.Rules{Drop: []string{".data", ".metadata.labels"}}, Key: transform.Key{Secret: []byte("k")}})
	rest, _ := shape(t, Options{Ops: []string{"deleted"}})
	for _, s := range []*Shape{team, rest} {
		s.failed = bank.failed
	}
	isTeam := func(of Labels) bool { value, found := of("team"); return found && value == "a" }
	return Of(
		Part{Takes: func(namespace string) bool { return namespace == "bank" }, Shape: bank},
		Part{Takes: func(string) bool { return true }, Matches: isTeam, Shape: team},
		Part{Takes: func(string) bool { return true }, Shape: rest},
	), failures
}

// TestI9TheFirstPartThatTakesTheObjectShapesIt, and the object as it was.
func TestI9TheFirstPartThatTakesTheObjectShapesIt(t *testing.T) {
	s, failures := parted(t)
	const team, none = `{"metadata":{"labels":{"x":"y","team":"a"}},"data":{"x":"s3cr3t"}}`, `{"data":{"x":"s3cr3t"}}`
	for what, c := range map[string]struct {
		namespace, object, want string // "" is filtered
		op                      change.Op
	}{
		"a namespace":              {"bank", none, `"x":"hmac-sha256:`, change.Updated},
		"a namespace, and a label": {"bank", team, `"team":"a"}},"data":{"x":"hmac-sha256:`, change.Updated},
		"its filter":               {"bank", `{"data":{"x":"skip"}}`, "", change.Updated},
		"a label":                  {"shop", team, `{"metadata":{}}`, change.Updated},
		"another label":            {"shop", `{"metadata":{"labels":{"team":"b"}},"data":{"x":"s3cr3t"}}`, "", change.Updated},
		"no label":                 {"shop", none, "", change.Added},
		"the rest":                 {"shop", none, none, change.Deleted},
	} {
		rec := record(c.op, c.object)
		rec.Key.Namespace, rec.Before = c.namespace, []byte(c.object)
		s.Apply(rec)
		if rec.Filtered != (c.want == "") || !strings.Contains(string(rec.Object), c.want) {
			t.Errorf("%s: the record is %+v with %s", what, rec, rec.Object)
		}
		if string(rec.Before) != string(rec.Object) {
			t.Errorf("%s: before is %s, the object %s", what, rec.Before, rec.Object)
		}
	}
	if len(*failures) > 0 {
		t.Errorf("failures %q", *failures)
	}
}

// TestI9AnObjectThatCannotBeReadGoesOnByItsIdentity, if it may be of a part with rules.
func TestI9AnObjectThatCannotBeReadGoesOnByItsIdentity(t *testing.T) {
	s, failures := parted(t)
	rec := record(change.Updated, `{"data":{"x":"s3cr3t"}`)
	rec.Before = rec.Object
	if s.Apply(rec); !strings.Contains(string(rec.Object), `"name":"s"`) || strings.Contains(string(rec.Object)+string(rec.Before), "s3cr3t") || len(*failures) != 2 {
		t.Errorf("object %s, before %s, failures %q", rec.Object, rec.Before, *failures)
	}
}

// TestI4WhoseLabelsNobodyKnowsGoesOn, unless no part of its namespace lets it.
func TestI4WhoseLabelsNobodyKnowsGoesOn(t *testing.T) {
	s, _ := parted(t)
	for what, c := range map[string]struct {
		rec      *change.Record
		filtered bool
	}{
		"a delete":                    {record(change.Deleted, ""), false},
		"an update that has no words": {&change.Record{Op: change.Updated, Withheld: change.Unreadable}, false},
		"a gap":                       {record(change.Gap, ""), false},
	} {
		if s.Apply(c.rec); c.rec.Filtered != c.filtered {
			t.Errorf("%s: filtered %t", what, c.rec.Filtered)
		}
	}
	deletes, _ := shape(t, Options{Ops: []string{"deleted"}})
	updates, _ := shape(t, Options{Ops: []string{"updated"}})
	none := Of(Part{Takes: func(string) bool { return true }, Matches: func(Labels) bool { return true }, Shape: deletes}, Part{Shape: updates})
	if rec := (&change.Record{Op: change.Added, Withheld: change.Unreadable}); true {
		if none.Apply(rec); !rec.Filtered {
			t.Error("what no part takes goes on")
		}
	}
}

// TestI9RulesOfTodayAreThoseOfTheNamespace: all of its entries, and of all where it has none.
func TestI9RulesOfTodayAreThoseOfTheNamespace(t *testing.T) {
	only := func(name string) func(string) bool { return func(namespace string) bool { return namespace == name } }
	entries := []Entry{
		{Rules: transform.Rules{Drop: []string{".a"}}, For: "bank", Takes: only("bank")},
		{Rules: transform.Rules{Drop: []string{".b"}}, For: "bank, x", Takes: only("bank")},
		{Rules: transform.Rules{Redact: []string{".c"}}, For: "shop", Takes: only("shop")},
	}
	made, err := NewToday(entries, transform.Key{Secret: []byte("k")}, transform.Rules{Drop: []string{".d"}})
	must(t, err)
	for namespace, want := range map[string]string{
		"bank": `{"c":"v"}`, "shop": `{"a":"v","b":"v","c":"hmac-sha256:`, "other": `{"c":"hmac-sha256:`,
	} {
		rec := record(change.Updated, `{"a":"v","b":"v","c":"v","d":"v"}`)
		rec.Key.Namespace = namespace
		if err := made.Reshape(rec, ""); err != nil || !strings.HasPrefix(string(rec.Object), want) {
			t.Errorf("%s: %s, %v, want %s", namespace, rec.Object, err, want)
		}
	}
	entries[0].For = "bank, y"
	if other, err := NewToday(entries, transform.Key{Secret: []byte("k")}); err != nil || other.Form == made.Form {
		t.Errorf("entries for other objects have the same form: %v", err)
	}
}
