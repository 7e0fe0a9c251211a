package shape

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
)

// told is a record of an Event that tells of a Pod.
func told() *change.Record {
	rec := record(change.Added, `{"reason":"s3cr3u","involvedObject":{"kind":"Pod","apiVersion":"v1","namespace":"shop","name":"web"}}`)
	rec.Stream.Resource = change.Resource{Version: "v1", Name: "events", Kind: "Event"}
	rec.Involved = []byte(`{"resourceVersion":"5","labels":{"app":"web","team":"s3cr3t"},"ownerReferences":[{"kind":"ReplicaSet","name":"web","uid":"u"}]}`)
	return rec
}

// TestI9ASinkSeesLessOfWhatEventsAreAbout: what it cuts and redacts of objects, it cuts and redacts of these, too.
func TestI9ASinkSeesLessOfWhatEventsAreAbout(t *testing.T) {
	for what, c := range map[string]struct {
		rules transform.Rules
		want  string
	}{
		"a label is dropped": {transform.Rules{Drop: []string{".metadata.labels.team"}}, `{"resourceVersion":"5","labels":{"app":"web"},"ownerReferences":[{"kind":"ReplicaSet","name":"web","uid":"u"}]}`},
		"labels alone":       {transform.Rules{Keep: []string{".involvedObject", ".metadata.labels.app"}}, `{"resourceVersion":"5","labels":{"app":"web"}}`},
		"no reference":       {transform.Rules{Drop: []string{".involvedObject"}}, `{"unknown":"unnamed"}`},
		"no metadata":        {transform.Rules{Keep: []string{".involvedObject"}}, `{"resourceVersion":"5"}`},
	} {
		s, failures := shape(t, Options{Rules: c.rules, Key: transform.Key{Secret: []byte("k")}})
		if got := s.Narrowed(told()); string(got.Involved) != c.want || len(*failures) > 0 {
			t.Errorf("%s: %s, %q, want %s", what, got.Involved, *failures, c.want)
		}
	}
	s, _ := shape(t, Options{Rules: transform.Rules{Redact: []string{".metadata.labels.team"}}, Key: transform.Key{Secret: []byte("k")}})
	pod := record(change.Added, `{"metadata":{"labels":{"team":"s3cr3t"}}}`)
	pod.Stream.Resource, pod.Key.Name = change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}, "web"
	hash := strings.TrimSuffix(strings.TrimPrefix(string(s.Narrowed(pod).Object), `{"metadata":{"labels":{"team":`), `}}}`)
	if got := string(s.Narrowed(told()).Involved); !strings.Contains(hash, "hmac") || !strings.Contains(got, `"team":`+hash) {
		t.Errorf("the hash is %s, and the Event tells %s", hash, got)
	}
	other := told()
	other.Object = bytes.ReplaceAll(other.Object, []byte(`"web"`), []byte(`"api"`))
	if got := string(s.Narrowed(other).Involved); !strings.Contains(got, "hmac") || strings.Contains(got, hash) {
		t.Errorf("the hash of a Pod's label, %s, is in what an Event tells of another: %s", hash, got)
	}
}

// TestI9WhatEventsAreAboutIsToldByTheRulesOfToday: what lies on disk loses it where any rule has changed.
func TestI9WhatEventsAreAboutIsToldByTheRulesOfToday(t *testing.T) {
	of := func(involving string) *Today {
		made := today(t, transform.Rules{}, "key")
		if involving != "" {
			made.Involving([]byte(involving))
		}
		return made
	}
	one, two, none := of("pods"), of("pods without labels"), of("")
	if one.Form == two.Form || one.Form == none.Form || one.Form != of("pods").Form {
		t.Error("forms do not tell rules apart")
	}
	for what, c := range map[string]struct {
		now  *Today
		form string
		left bool
	}{
		"the same rules": {one, one.Form, true}, "other rules": {two, one.Form, false}, "rules that nobody knows": {one, "", false},
		"not asked for before": {one, none.Form, false}, "not asked for now": {none, none.Form, false}, "nor now": {none, one.Form, false},
	} {
		rec := told()
		if err := c.now.Reshape(rec, c.form); err != nil || (rec.Involved != nil) != c.left || string(rec.Object) != string(told().Object) {
			t.Errorf("%s: %s, %v", what, rec.Involved, err)
		}
	}
}
