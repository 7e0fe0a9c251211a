package shape

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
)

func record(op change.Op, object string) *change.Record {
	rec := &change.Record{
		Stream: &change.Stream{Resource: change.Resource{Version: "v1", Name: "secrets", Kind: "Secret"}},
		Op:     op, Key: change.Key{Namespace: "shop", Name: "s"}, UID: "u", ResourceVersion: "7",
	}
	if object != "" {
		rec.Object = []byte(object)
	}
	return rec
}

func shape(t *testing.T, o Options) (*Shape, *[]string) {
	t.Helper()
	failures := new([]string)
	o.Failed = func(rec *change.Record, err error) { *failures = append(*failures, rec.Key.String()+": "+err.Error()) }
	s, err := New(o)
	must(t, err)
	return s, failures
}

func TestNothingAskedIsNoShape(t *testing.T) {
	if s, _ := shape(t, Options{}); s != nil {
		t.Errorf("shape is %+v", s)
	}
}

func TestOperations(t *testing.T) {
	for _, c := range []struct{ ops, pass string }{
		{"added", "added replaced sync"}, {"updated", "updated replaced sync"}, {"deleted", "deleted"}, {"added updated", "added updated replaced sync"},
	} {
		s, _ := shape(t, Options{Ops: strings.Fields(c.ops)})
		var pass []string
		for op := change.Added; op <= change.Gap; op++ {
			rec := record(op, `{}`)
			if s.Apply(rec); !rec.Filtered && op.OfObject() {
				pass = append(pass, op.String())
			}
			if rec.Filtered && !op.OfObject() {
				t.Errorf("ops %s hold back a %s", c.ops, op)
			}
		}
		beside := record(change.Updated, `{}`)
		beside.DuringSnapshot = true // it is passed by as the snapshot's records are
		if s.Apply(beside); beside.Filtered == strings.Contains(c.pass, "sync") {
			t.Errorf("ops %s: an update beside a snapshot is held back: %t", c.ops, beside.Filtered)
		}
		if got := strings.Join(pass, " "); got != c.pass {
			t.Errorf("ops %s let pass %s, want %s", c.ops, got, c.pass)
		}
	}
}

func TestI4RecordWhoseFilterFailsGoesOn(t *testing.T) {
	s, failures := shape(t, Options{Filter: "object.spec.x == 1"})
	rec := record(change.Updated, `{"data":{}}`)
	if s.Apply(rec); rec.Filtered || string(rec.Object) != `{"data":{}}` || len(*failures) != 1 {
		t.Errorf("record %+v, failures %q", rec, *failures)
	}
	for object, filtered := range map[string]bool{`{"spec":{"x":1}}`: false, `{"spec":{"x":2}}`: true} {
		rec := record(change.Updated, object)
		if s.Apply(rec); rec.Filtered != filtered || filtered != (rec.Object == nil) {
			t.Errorf("%s: record %+v", object, rec)
		}
	}
	rec = record(change.Deleted, "")
	if s.Apply(rec); rec.Filtered {
		t.Error("a delete whose last state is not known was held back")
	}
}

func TestI9ObjectThatCannotBeRedactedGoesOnByItsIdentity(t *testing.T) {
	s, failures := shape(t, Options{Rules: transform.Secrets(), Key: transform.Key{Secret: []byte("k")}})
	rec := record(change.Updated, `{"data":{"p":"s3cr3t"}`)
	const want = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"shop","uid":"u","resourceVersion":"7"}}`
	if s.Apply(rec); string(rec.Object) != want || len(*failures) != 1 || strings.Contains((*failures)[0], "s3cr3t") {
		t.Errorf("object %s, failures %q", rec.Object, *failures)
	}
	rec = record(change.Updated, `{"data":{"p":"s3cr3t"}}`)
	if s.Apply(rec); strings.Contains(string(rec.Object), "s3cr3t") || !strings.Contains(string(rec.Object), `"p":"hmac-sha256:`) {
		t.Errorf("object %s", rec.Object)
	}
}

func TestFilterSeesWhatIsCutLater(t *testing.T) {
	s, _ := shape(t, Options{Filter: `object.status == "on"`, Rules: transform.Rules{Drop: []string{".status"}}, Key: transform.Key{Secret: []byte("k")}})
	rec := record(change.Updated, `{"status":"on","spec":1}`)
	if s.Apply(rec); rec.Filtered || string(rec.Object) != `{"spec":1}` {
		t.Errorf("record %+v", rec)
	}
}

func TestI4RecordWhoseFilterFailsIsWithheldWhereAsked(t *testing.T) {
	for failing, expression := range map[string]string{
		"type error": `object.spec.x > 1`,
		"over cost":  `[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, a+b+c+d+e+f >= 0))))))`,
	} {
		s, failures := shape(t, Options{Filter: expression, WithholdFailed: true, Rules: transform.Secrets(), Key: transform.Key{Secret: []byte("k")}})
		rec := record(change.Updated, `{"spec":{"x":"a"},"data":{"p":"s3cr3t"}}`)
		s.Apply(rec)
		if rec.Filtered || rec.Withheld != withheldByFilter || len(*failures) != 1 || strings.Contains(string(rec.Object), "s3cr3t") {
			t.Errorf("%s: record %+v with %s, failures %q", failing, rec, rec.Object, *failures)
		}
	}
	s, _ := shape(t, Options{Filter: `object.spec.x > 1`, WithholdFailed: true})
	rec := record(change.Updated, `{"spec":{"x":2}}`)
	if s.Apply(rec); rec.Filtered || rec.Withheld != "" {
		t.Errorf("a record that passes is %+v", rec)
	}
}

// What is kept is what was delivered, so that is what a filter sees of the past: never more than its form lets through.
func TestFilterSeesTheObjectAsItWas(t *testing.T) {
	s, _ := shape(t, Options{Filter: `oldObject != null && oldObject.data.p != object.data.p`, Before: true})
	rec := record(change.Updated, `{"data":{"p":"b"}}`)
	rec.Before = []byte(`{"data":{"p":"a"}}`)
	if s.Apply(rec); rec.Filtered || rec.Before == nil {
		t.Errorf("record %+v", rec)
	}
	rec = record(change.Updated, `{"data":{"p":"a"}}`)
	rec.Before = []byte(`{"data":{"p":"a"}}`)
	if s.Apply(rec); !rec.Filtered || rec.Before != nil {
		t.Errorf("record %+v", rec)
	}
}

// TestI9NoRuleStopsAtTheTextOfTheLastApplied: what a rule takes is not bare in the annotation that repeats the object.
func TestI9NoRuleStopsAtTheTextOfTheLastApplied(t *testing.T) {
	const applied = `{\"apiVersion\":\"v1\",\"data\":{\"pin\":\"s3cr3t\"},\"spec\":{\"env\":[{\"name\":\"db/PIN\",\"value\":\"s3cr3t\"}],\"gone\":\"s3cr3t\",\"stays\":1}}\n`
	for how, annotation := range map[string]string{
		"as kubectl writes it": `"` + applied + `"`, "escaped": `"` + strings.ReplaceAll(applied, "data", `\u0064ata`) + `"`, "no object": `"s3cr3t"`, "a list": `"[\"s3cr3t\"]"`,
		"no text": `{"a":["s3cr3t"]}`, "cut off": `"` + strings.TrimSuffix(applied, `}}\n`) + `"`,
		"one in itself": `"{\"metadata\":{\"annotations\":{\"kubectl.kubernetes.io/last-applied-configuration\":\"{\\\"spec\\\":{\\\"gone\\\":\\\"s3cr3t\\\"}}\"}}}"`,
	} {
		for whose, rules := range map[string]transform.Rules{
			"redacted": {Redact: []string{".data", ".spec.gone"}, Env: []string{"*PIN*"}, Applied: true},
			"dropped":  {Drop: []string{".data", ".spec.gone", ".spec.env"}, Applied: true},
			"not kept": {Keep: []string{".metadata.annotations", ".spec.stays"}, Applied: true},
		} {
			made, failures := shape(t, Options{Rules: rules, Key: transform.Key{Secret: []byte("k")}})
			for _, by := range []func(rec *change.Record) *change.Record{func(rec *change.Record) *change.Record { made.Apply(rec); return rec }, made.Narrowed} {
				rec := by(record(change.Added, `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":`+annotation+`,"a":"b"}}}`))
				if text := string(rec.Object); strings.Contains(text, "s3cr3t") || !json.Valid(rec.Object) || !strings.Contains(text, `"a":"b"`) || len(*failures) > 0 {
					t.Errorf("%s, %s: %s, %q", how, whose, text, *failures)
				}
			}
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
