package filter

import (
	"errors"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

const pod = `{"metadata":{"name":"web","namespace":"shop","labels":{"app":"web"}},"spec":{"containers":[
	{"name":"a","image":"r/a:1","resources":{"limits":{"memory":"128Mi"}}},{"name":"b","image":"r/b:2"}]},
	"status":{"phase":"Failed","restarts":9007199254740993}}`

func TestExpressionsSeeObjectAndOp(t *testing.T) {
	for expression, want := range map[string]bool{
		`object.status.phase == "Failed"`:                             true,
		`object.status.phase == "Running"`:                            false,
		`op == "updated"`:                                             true,
		`op in ["added", "deleted"]`:                                  false,
		`has(object.metadata.labels.app)`:                             true,
		`object.spec.containers.exists(c, c.image.startsWith("r/b"))`: true,
		`object.status.restarts == 9007199254740993`:                  true,
		`quantity(object.spec.containers[0].resources.limits.memory).isGreaterThan(quantity("100Mi"))`: true,
		`object.spec.containers.map(c, c.name).isSorted()`:                                             true,
		`object.metadata.name.find("^w.b$") == "web"`:                                                  true,
		`object.?metadata.?annotations["x"].orValue("none") == "none"`:                                 true,
		`object.metadata.namespace.upperAscii() == "SHOP"`:                                             true,
	} {
		f, err := New(expression, Options{})
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		if got, err := f.Passes(&change.Record{Op: change.Updated, Object: []byte(pod)}); err != nil || got != want {
			t.Errorf("%s is %t, %v, want %t", expression, got, err, want)
		}
	}
}

func TestErrorsPointIntoTheExpression(t *testing.T) {
	for expression, want := range map[string]string{
		`object.status.phase = "x"`: "^",
		`objekt.status == 1`:        "undeclared reference to 'objekt'",
		`op + 1`:                    "no matching overload",
		`op`:                        "the expression is of type string; want one that is true or false",
		``:                          "Syntax error",
	} {
		if _, err := New(expression, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", expression, err, want)
		}
	}
}

func TestI4ErrorsAtRunTimeAreTold(t *testing.T) {
	for expression, want := range map[string]string{
		`object.nothing.here == 1`: "no such key: nothing",
		`object.status.phase`:      "neither true nor false",
		`object.status.phase > 1`:  "no such overload",
		`[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, a+b+c+d+e+f >= 0))))))`: "cost limit exceeded",
	} {
		f, err := New(expression, Options{})
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		if passes, err := f.Passes(&change.Record{Op: change.Added, Object: []byte(pod)}); passes || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %t, %v, want an error with %q", expression, passes, err, want)
		}
	}
}

func TestI4WhatSpeaksOfNoObjectPasses(t *testing.T) {
	f, err := New("false", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range []*change.Record{
		{Op: change.Gap}, {Op: change.SnapshotBegin}, {Op: change.SnapshotEnd}, {Op: change.Deleted, FinalStateUnknown: true},
	} {
		if passes, err := f.Passes(rec); err != nil || !passes {
			t.Errorf("%s: %t, %v", rec.Op, passes, err)
		}
	}
}

const podBefore = `{"metadata":{"name":"web"},"status":{"phase":"Running","restarts":9007199254740992}}`

func TestExpressionsSeeTheObjectAsItWas(t *testing.T) {
	for expression, want := range map[string][2]bool{ // with an object before, and without one
		`oldObject == null || oldObject.status.phase != object.status.phase`: {true, true},
		`oldObject != null && oldObject.status.phase == "Running"`:           {true, false},
		`oldObject.?status.?phase.orValue("") == "Running"`:                  {true, false},
		`object.status.phase == "Failed"`:                                    {true, true},
	} {
		f, err := New(expression, Options{Before: true})
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		for i, old := range [][]byte{[]byte(podBefore), nil} {
			if got, err := f.Passes(&change.Record{Op: change.Updated, Object: []byte(pod), Before: old}); err != nil || got != want[i] {
				t.Errorf("%s is %t, %v after %s, want %t", expression, got, err, old, want[i])
			}
		}
	}
}

func TestOldObjectNeedsToBeKept(t *testing.T) {
	if _, err := New(`oldObject.status.phase != "x"`, Options{}); !errors.Is(err, ErrNoBefore) {
		t.Errorf("error %v, want %v", err, ErrNoBefore)
	}
	if _, err := New(`oldObject.status.phase != objekt`, Options{}); err == nil || errors.Is(err, ErrNoBefore) {
		t.Errorf("error %v, want one of objekt", err)
	}
	f, err := New(`oldObject.status.phase == "x"`, Options{Before: true})
	if err != nil {
		t.Fatal(err)
	}
	for old, want := range map[string]string{`{"status":`: "read the object as it was", `{}`: "no such key: status"} {
		if _, err := f.Passes(&change.Record{Op: change.Updated, Object: []byte(pod), Before: []byte(old)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("before %s: error %v, want one with %q", old, err, want)
		}
	}
}
