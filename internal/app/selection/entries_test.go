package selection

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
)

// special are three entries of pods, whose last one is of all that the others leave.
func special() []config.Resource {
	return []config.Resource{
		{Name: "pods", Namespaces: []string{"bank"}, Redact: config.Redaction{Paths: []string{".spec"}}},
		{Name: "nodes"},
		{Name: "pods", LabelSelector: "team in (a,b),!public", Drop: []string{".spec"}},
		{Name: "pods", FieldSelector: "spec.nodeName=x"},
	}
}

func chosenOf(t *testing.T, resources []config.Resource) *Choice {
	t.Helper()
	chosen, errs := Choose(everything(), resources)
	must(t, errors.Join(errs...))
	return chosen
}

// TestSeveralEntriesAreOneStream, which the last one chooses for, or one of each namespace.
func TestSeveralEntriesAreOneStream(t *testing.T) {
	resources := special()
	chosen := chosenOf(t, resources)
	if got := described(chosen); !slices.Equal(got, []string{"pods  pods", "nodes  nodes"}) {
		t.Errorf("streams %q", got)
	}
	s := &chosen.Streams[0]
	if s.Configured != &resources[3] || len(s.Special) != 2 || s.Selection.FieldSelector != "spec.nodeName=x" || s.Selection.LabelSelector != "" {
		t.Errorf("the stream is %+v", s)
	}
	apart := chosenOf(t, []config.Resource{
		{Name: "pods", Namespaces: []string{"a", "b"}, LabelSelector: "x"}, {Name: "pods", Namespaces: []string{"b"}}, {Name: "*"},
	})
	if got := described(apart); !slices.Equal(got, []string{"a/pods x pods+*", "b/pods  pods+*", "deployments.apps  *", "nodes  *"}) {
		t.Errorf("streams %q", got)
	}
}

// TestI9TheEntryOfTheObjectShapesIt, in line and on disk; other entries are another form.
func TestI9TheEntryOfTheObjectShapesIt(t *testing.T) {
	chosen := chosenOf(t, special())
	shape, err := ShapeOf(&chosen.Streams[0], transform.Key{Secret: []byte("k")}, nil)
	must(t, err)
	of := func(namespace, labels string) *change.Record {
		object := `{"metadata":{"labels":{` + labels + `}},"spec":"s3cr3t"}`
		return &change.Record{Stream: &chosen.Streams[0].Stream, Op: change.Updated, Key: change.Key{Namespace: namespace, Name: "n"}, Object: []byte(object)}
	}
	for what, c := range map[string]struct {
		rec  *change.Record
		want string
	}{
		"the namespace": {of("bank", `"team":"a"`), `"spec":"hmac-sha256:`},
		"the labels":    {of("shop", `"x":"y","team":"b"`), `{"metadata":{"labels":{"x":"y","team":"b"}}}`},
		"others":        {of("shop", `"team":"b","public":""`), `"spec":"s3cr3t"`},
		"none":          {of("shop", ``), `"spec":"s3cr3t"`},
	} {
		if shape(c.rec); c.rec.Filtered || !strings.Contains(string(c.rec.Object), c.want) {
			t.Errorf("%s: %s", what, c.rec.Object)
		}
	}
	today, err := TodayOf(&chosen.Streams[0], transform.Key{Secret: []byte("k")})
	must(t, err)
	if rec := of("shop", `"team":"c"`); today.Reshape(rec, "") != nil || strings.Contains(string(rec.Object), "s3cr3t") {
		t.Errorf("what may have been of an entry with rules is %s", rec.Object)
	}
	others := special()
	others[2].LabelSelector = "team"
	other, err := TodayOf(&chosenOf(t, others).Streams[0], transform.Key{Secret: []byte("k")})
	if err != nil || other.Form == today.Form {
		t.Errorf("another selector has the same form: %v", err)
	}
}

func TestADeleteIsToldIfNoEntryKeepsItBack(t *testing.T) {
	told := func(special config.Resource) bool {
		return (&Selected{Special: []*config.Resource{&special}, Configured: &config.Resource{}}).TellsDeletes()
	}
	if !told(config.Resource{Ops: []string{"deleted"}}) || told(config.Resource{Ops: []string{"added"}}) || told(config.Resource{Filter: "true"}) {
		t.Error("which deletes are told is wrong")
	}
}

// TestVerifyAsksAFilterOfWhatWas: it compiles, and nothing is certain of what it lets pass.
func TestVerifyAsksAFilterOfWhatWas(t *testing.T) {
	s := &Selected{Configured: &config.Resource{Name: "pods", Before: true, Filter: "oldObject != null"}}
	if made, err := FilterOf(s); err != nil || made == nil || !s.AsksBefore() {
		t.Errorf("%v, %v", made, err)
	}
	if (&Selected{Configured: &config.Resource{Filter: "object.x == 1"}}).AsksBefore() {
		t.Error("a filter of the object asks what was")
	}
}
