package audit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// event is one of a request on configmap a in namespace n.
func event(t *testing.T, verb string, code int, request, response string) *Event {
	t.Helper()
	text := fmt.Sprintf(`{"auditID":"x-1","stage":"ResponseComplete","verb":%q,"requestURI":"/api/v1/namespaces/n/configmaps/a?fieldManager=tool",
		"user":{"username":"alice"},"objectRef":{"resource":"configmaps","namespace":"n","name":"a","apiVersion":"v1"},
		"responseStatus":{"code":%d},"requestReceivedTimestamp":"2026-11-24T05:00:01.500000Z","stageTimestamp":"2026-11-24T05:00:02.500000Z",
		"requestObject":%s,"responseObject":%s}`, verb, code, request, response)
	e, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func state(more string) string {
	return `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"9"` + more + `}}`
}

// told is the record of the event's answer, of configmaps.
func told(t *testing.T, e *Event, of Object) *change.Record {
	t.Helper()
	answers, _ := Judge(e)
	of.Stream = &change.Stream{Resource: change.Resource{Version: "v1", Name: "configmaps"}}
	rec, fits := e.Record(answers[0], of, "out")
	if !fits {
		t.Fatal("the record is too large")
	}
	return rec
}

// judged is the answer as "op version certainty", or the outcome.
func judged(e *Event) string {
	answers, outcome := Judge(e)
	if outcome != Told {
		return string(outcome)
	}
	var all []string
	for _, a := range answers {
		all = append(all, fmt.Sprintf("%s %s %s", a.Op, a.Version, a.Certainty))
	}
	return strings.Join(all, ", ")
}

func TestI4OnlyWhatNobodyElseCanHaveMadeIsProven(t *testing.T) {
	at := func(version string) string { return `{"metadata":{"resourceVersion":` + version + `}}` }
	managed := func(manager, second string) string {
		return state(`,"managedFields":[{"manager":"` + manager + `","time":"2026-11-24T05:00:` + second + `Z"}]`)
	}
	const gone = `{"kind":"Status","apiVersion":"v1","status":"Success","details":{"name":"a","uid":"u"}}`
	const test = `{"op":"test","path":"/metadata/resourceVersion","value":"8"}`
	for name, c := range map[string]struct {
		verb              string
		code              int
		request, response string
		want              string
	}{
		"a create":                    {"create", 201, `{}`, state(""), "added 9 proven"},
		"an update that creates":      {"update", 201, `{}`, state(""), "added 9 proven"},
		"an update at a version":      {"update", 200, at(`"8"`), state(""), "updated 9 proven"},
		"one that changes nothing":    {"update", 200, at(`"9"`), state(""), "unchanged"},
		"one at no version":           {"update", 200, at(`""`), state(""), "updated 9 possible"},
		"one at version 0":            {"update", 200, at(`"0"`), state(""), "updated 9 possible"},
		"one at version 00":           {"update", 200, at(`"00"`), state(""), "updated 9 possible"},
		"one at a number":             {"update", 200, at(`8`), state(""), "updated 9 possible"},
		"one at 08":                   {"patch", 200, at(`"09"`), state(""), "unchanged"},
		"a patch":                     {"patch", 200, `{}`, state(""), "updated 9 possible"},
		"a patch at a version":        {"patch", 200, at(`"8"`), state(""), "updated 9 proven"},
		"the same name twice":         {"patch", 200, `{"metadata":{"resourceVersion":"8"},"metadata":{}}`, state(""), "updated 9 possible"},
		"the same name twice within":  {"patch", 200, `{"metadata":{"resourceVersion":"8","resourceVersion":"9"}}`, state(""), "updated 9 possible"},
		"a name that is another":      {"patch", 200, `{"Metadata":{"resourceVersion":"8"}}`, state(""), "updated 9 possible"},
		"a directive":                 {"patch", 200, `{"metadata":{"$retainKeys":["name"],"resourceVersion":"8"}}`, state(""), "updated 9 possible"},
		"a JSON Patch that tests":     {"patch", 200, `[` + test + `]`, state(""), "updated 9 proven"},
		"and then replaces":           {"patch", 200, `[` + test + `,{"op":"replace","path":"/metadata/resourceVersion","value":"9"}]`, state(""), "updated 9 possible"},
		"without the first slash":     {"patch", 200, `[` + test + `,{"op":"replace","path":"x/metadata/resourceVersion","value":"9"}]`, state(""), "updated 9 possible"},
		"by what it stands in":        {"patch", 200, `[` + test + `,{"op":"replace","path":"/metadata","value":{}}]`, state(""), "updated 9 possible"},
		"its manager's":               {"patch", 200, `{}`, managed("tool", "01"), "updated 9 likely"},
		"another manager's":           {"patch", 200, `{}`, managed("other", "01"), "updated 9 possible"},
		"its manager's before":        {"patch", 200, `{}`, managed("tool", "00"), "updated 9 possible"},
		"a delete":                    {"delete", 200, `{}`, gone, "deleted  proven"},
		"a delete that goes on":       {"delete", 200, `{}`, state(`,"deletionTimestamp":"2026-11-24T05:00:01Z","finalizers":["f"]`), "updated 9 possible"},
		"the last finalizer":          {"patch", 200, `{}`, state(`,"deletionTimestamp":"2026-11-24T05:00:01Z","deletionGracePeriodSeconds":0`), "deleted  possible"},
		"a delete with an object":     {"delete", 200, `{}`, state(""), "deleted  proven"},
		"a delete that ends one":      {"delete", 200, `{}`, state(`,"deletionTimestamp":"2026-11-24T05:00:01Z","deletionGracePeriodSeconds":0`), "deleted  possible"},
		"a dry delete":                {"delete", 200, `{"dryRun":["All"]}`, gone, "ignored"},
		"a conflict":                  {"update", 409, at(`"8"`), `{"kind":"Status","apiVersion":"v1"}`, "ignored"},
		"a timeout":                   {"update", 504, at(`"8"`), `{"kind":"Status","apiVersion":"v1"}`, "unknown"},
		"no body":                     {"update", 200, at(`"8"`), `null`, "unknown"},
		"a list":                      {"deletecollection", 200, `{}`, `{"kind":"ConfigMapList","items":[` + state("") + `]}`, "deleted  possible"},
		"a read":                      {"get", 200, `null`, state(""), "ignored"},
		"an object of another name":   {"update", 200, at(`"8"`), strings.Replace(state(""), `"a"`, `"b"`, 1), "unknown"},
		"an object without a version": {"update", 200, at(`"8"`), `{"metadata":{"name":"a","namespace":"n","uid":"u"}}`, "unknown"},
		"a custom kind called Status": {"delete", 200, `{}`, strings.Replace(gone, `"v1"`, `"x.io/v1"`, 1), "unknown"},
	} {
		if got := judged(event(t, c.verb, c.code, c.request, c.response)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestADryRunChangesNothing(t *testing.T) {
	e := event(t, "create", 201, `{}`, state(""))
	e.RequestURI += "&dryRun=All"
	if got := judged(e); got != "ignored" {
		t.Errorf("got %s", got)
	}
	e.RequestURI = "/%zz?a=%zz"
	if got := judged(e); got != "ignored" {
		t.Errorf("of an address that cannot be read: got %s", got)
	}
}

// I9: whatever the bodies hold, the record has name, namespace, uid and version alone.
func TestI9NothingOfABodyIsKept(t *testing.T) {
	secret := `,"annotations":{"x":"PRIVATE"}},"data":{"password":"PRIVATE"`
	e := event(t, "update", 200, `{"metadata":{"resourceVersion":"8"},"data":{"password":"PRIVATE"}}`, state(secret))
	rec := told(t, e, Object{ClusterUID: "0b6f3c1e-8a4d"})
	if strings.Contains(string(rec.Object), "PRIVATE") {
		t.Errorf("%s", rec.Object)
	}
	if want := `"change":"0b6f3c1e/configmaps/n/a/u/9/updated"`; !strings.Contains(string(rec.Object), want) {
		t.Errorf("%s has not %s", rec.Object, want)
	}
}

// A part of a name is another name: what is too long is left out, or stands there as its hash.
func TestAUserIsNeverCut(t *testing.T) {
	e := event(t, "create", 201, `{}`, state(""))
	e.ID = strings.Repeat("i", maxRecord)
	e.User.Groups = []string{strings.Repeat("g", maxRecord)}
	rec := told(t, e, Object{})
	if !strings.Contains(string(rec.Object), `"username":"alice"`) ||
		!strings.Contains(string(rec.Object), `"cut":["auditID","userAgent","sourceIPs","reason","groups"]`) {
		t.Errorf("%.300s", rec.Object)
	}
	e.User.Name = strings.Repeat("u", maxRecord)
	rec = told(t, e, Object{})
	if !strings.Contains(string(rec.Object), `"username":"%sha256-`) || !strings.Contains(string(rec.Object), `"user"]`) {
		t.Errorf("%.300s", rec.Object)
	}
}

// I8: who sends a request may choose its audit id. It must not take the place of somebody else's record.
func TestI8WhoeverChoosesAnAuditIDTakesNobodysPlace(t *testing.T) {
	id := func(user, request string) string {
		e := event(t, "patch", 200, request, state(""))
		e.User.Name = user
		return told(t, e, Object{}).ID("0b6f3c1e").String()
	}
	if a, b := id("alice", `{"metadata":{"resourceVersion":"8"}}`), id("mallory", `{}`); a == b {
		t.Errorf("two users' records are %s", a)
	}
	if a, b := id("alice", `{}`), id("alice", `{}`); a != b {
		t.Errorf("one event has the ids %s and %s", a, b)
	}
}

func TestI8WhatASelectorMakesOfAnUpdateIsNotGuessed(t *testing.T) {
	e := event(t, "update", 200, `{"metadata":{"resourceVersion":"8"}}`, state(""))
	rec := told(t, e, Object{Selected: true})
	if strings.Contains(string(rec.Object), `"change"`) {
		t.Errorf("%s", rec.Object)
	}
	late := change.NewEpoch("0b6f3c1e", e.Completed.Add(1e9).UnixMilli())
	rec = told(t, e, Object{Epoch: late})
	if strings.Contains(string(rec.Object), `"change"`) || !strings.Contains(string(rec.Object), `"certainty":"possible"`) {
		t.Errorf("of an event of an earlier history: %s", rec.Object)
	}
}
