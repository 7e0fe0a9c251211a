package filter

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

const pod = `{"metadata":{"name":"web","namespace":"shop","labels":{"app":"web"}},"spec":{"containers":[
	{"name":"a","image":"r/a:1","resources":{"limits":{"memory":"128Mi"}}},{"name":"b","image":"r/b:2"}]},
	"status":{"phase":"Failed","restarts":9007199254740993}}`

// asked is what the expression says of the record.
func asked(t *testing.T, expression string, rec *change.Record) (bool, error) {
	t.Helper()
	f, err := New(expression, true)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return ask(f, rec)
}

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
		if got, err := asked(t, expression, &change.Record{Op: change.Updated, Object: []byte(pod)}); err != nil || got != want {
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
		if _, err := New(expression, false); err == nil || !strings.Contains(err.Error(), want) {
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
		if passes, err := asked(t, expression, &change.Record{Op: change.Added, Object: []byte(pod)}); passes || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %t, %v, want an error with %q", expression, passes, err, want)
		}
	}
}

func TestI4WhatSpeaksOfNoObjectPasses(t *testing.T) {
	for _, rec := range []*change.Record{
		{Op: change.Gap}, {Op: change.SnapshotBegin}, {Op: change.SnapshotEnd}, {Op: change.Deleted, FinalStateUnknown: true},
	} {
		if passes, err := asked(t, "false", rec); err != nil || !passes {
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
		for i, old := range [][]byte{[]byte(podBefore), nil} {
			if got, err := asked(t, expression, &change.Record{Op: change.Updated, Object: []byte(pod), Before: old}); err != nil || got != want[i] {
				t.Errorf("%s is %t, %v after %s, want %t", expression, got, err, old, want[i])
			}
		}
	}
}

func TestOldObjectNeedsToBeKept(t *testing.T) {
	if _, err := New(`oldObject.status.phase != "x"`, false); !errors.Is(err, errNoBefore) {
		t.Errorf("error %v, want %v", err, errNoBefore)
	}
	if _, err := New(`oldObject.status.phase != objekt`, false); err == nil || errors.Is(err, errNoBefore) {
		t.Errorf("error %v, want one of objekt", err)
	}
	for old, want := range map[string]string{`{"status":`: "read the object as it was", `{}`: "no such key: status"} {
		if _, err := asked(t, `oldObject.status.phase == "x"`, &change.Record{Op: change.Updated, Object: []byte(pod), Before: []byte(old)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("before %s: error %v, want one with %q", old, err, want)
		}
	}
}

// A filter sees what is redacted later, and its errors are logged.
func TestI9ErrorsQuoteNothingOfTheObject(t *testing.T) {
	const secret = `{"data":{"p":"s3cr3t","n":77177,"m":{"a":1}}}`
	for expression, want := range map[string]string{
		`int(object.data.p) > 1`:                                              errQuoting.Error(),
		`timestamp(object.data.p) > timestamp(0)`:                             errQuoting.Error(),
		`duration(object.data.p) > duration("1s")`:                            errQuoting.Error(),
		`quantity(object.data.p).isGreaterThan(quantity("1"))`:                errQuoting.Error(),
		`url(object.data.p).getHost() == ""`:                                  errQuoting.Error(),
		`ip(object.data.p).family() == 4`:                                     errQuoting.Error(),
		`cidr(object.data.p).prefixLength() == 4`:                             errQuoting.Error(),
		`bool(object.data.p)`:                                                 errQuoting.Error(),
		`object.data.p.charAt(object.data.n) == ""`:                           "index out of range",
		`[1][object.data.n] == 1`:                                             "index out of bounds",
		`object.data.m[object.data.p] == 1`:                                   "no such key",
		`object.data.m["b"] == 1 || object.data.q == ""`:                      "no such key: ",
		`object.data.p.matches("(" + object.data.p)`:                          errQuoting.Error(),
		`object.data.p > object.data.n`:                                       "no such overload",
		`object.data.n / (object.data.n - 77177) == 1`:                        "division by zero",
		`object.data.n * 9223372036854775807 > 0`:                             "integer overflow",
		`object.data.p.format([]) == ""`:                                      "",
		`format.named(object.data.p).value().validate("") == optional.none()`: "",
	} {
		_, err := asked(t, expression, &change.Record{Op: change.Added, Object: []byte(secret)})
		if text := fmt.Sprint(err); err == nil && want != "" || !strings.Contains(text, want) || strings.Contains(text, "s3cr3t") || strings.Contains(text, "77177") {
			t.Errorf("%s: error %v, want %q and nothing of the object", expression, err, want)
		}
	}
	if _, err := asked(t, "object.data.p == 1", &change.Record{Op: change.Added, Object: []byte(`{"data":{"p":s3cr3t}}`)}); err == nil || strings.Contains(err.Error(), "'s'") {
		t.Errorf("of what is no JSON: %v", err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestExpressionsSeeTheNamespace(t *testing.T) {
	for expression, want := range map[string]bool{
		`namespaceObject.metadata.labels.team == "red"`:                      true,
		`namespaceObject.metadata.name == "shop"`:                            true,
		`namespaceObject.metadata.labels[?"tier"].orValue("none") == "none"`: true,
		`namespaceObject == null`:                                            false,
	} {
		rec := change.Record{Op: change.Added, Object: []byte(pod), Key: change.Key{Namespace: "shop"}, NamespaceLabels: map[string]string{"team": "red"}}
		if got, err := asked(t, expression, &rec); err != nil || got != want {
			t.Errorf("%s is %t, %v, want %t", expression, got, err, want)
		}
	}
	if got, err := asked(t, `namespaceObject == null`, &change.Record{Op: change.Added, Object: []byte(pod)}); err != nil || !got {
		t.Errorf("of an object without a namespace: %t, %v", got, err)
	}
}
