package app

import (
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/shape"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
)

// TestI9ChangesNameNothingThatTheSinkDoesNotSee: neither a key that its rules drop nor a value that they hash.
func TestI9ChangesNameNothingThatTheSinkDoesNotSee(t *testing.T) {
	rules, err := shape.New(shape.Options{
		Rules: transform.Rules{Drop: []string{".data"}, Redact: []string{".spec"}}, Key: transform.Key{Secret: []byte("key")}, Failed: func(*change.Record, error) { t.Error("failed") },
	})
	if err != nil {
		t.Fatal(err)
	}
	asks := true
	narrow := saysChanges(rules.Narrowed, func(*change.Stream) bool { return asks })
	shared := &change.Record{
		Stream: &change.Stream{Resource: change.Resource{Name: "x"}}, Op: change.Updated,
		Before: []byte(`{"metadata":{"resourceVersion":"1"},"data":{"secret-key":1},"spec":{"pin":1,"same":1},"status":{"a":1}}`),
		Object: []byte(`{"metadata":{"resourceVersion":"2"},"data":{"other-key":1},"spec":{"pin":2,"same":1},"status":{"a":2}}`),
	}
	told := narrow(shared)
	if got := string(told.Changed); got != `["/spec/pin","/status/a"]` || told.ChangedCut || strings.Contains(string(told.Object)+string(told.Before), "-key") {
		t.Errorf("changed is %s of\n%s\n%s", got, told.Before, told.Object)
	}
	if shared.Changed != nil {
		t.Error("other sinks see it, too")
	}
	for name, of := range map[string]func(*change.Record){
		"an object that is new": func(rec *change.Record) { rec.Before = nil },
		"a delete":              func(rec *change.Record) { rec.Op = change.Deleted },
		"a withheld one":        func(rec *change.Record) { rec.Withheld = "filter" },
		"no JSON":               func(rec *change.Record) { rec.Before = []byte("{") },
	} {
		rec := *shared
		of(&rec)
		if name == "no JSON" {
			rec.Object = []byte(`{`)
		}
		if got := saysChanges(nil, func(*change.Stream) bool { return true })(&rec); got.Changed != nil {
			t.Errorf("%s: %s", name, got.Changed)
		}
	}
	asks = false
	if told := narrow(shared); told.Changed != nil {
		t.Errorf("nobody has asked, and changed is %s", told.Changed)
	}
}
