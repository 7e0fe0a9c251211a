package config

import (
	"slices"
	"strings"
	"testing"
)

func TestPartsOfAResource(t *testing.T) {
	entries := func(namespaces ...string) (all []*Resource) {
		for _, one := range namespaces {
			all = append(all, &Resource{Name: one, Namespaces: strings.Fields(one)})
		}
		return all
	}
	for _, c := range []struct {
		entries []*Resource
		want    []string
	}{
		{entries(""), []string{": "}},
		{entries("a b"), []string{"a: a b", "b: a b"}},
		{entries("a", "b a", "c"), []string{"a: a|b a", "b: b a", "c: c"}},
		{entries("a", "b", ""), []string{": a|b|"}},
		{nil, nil},
	} {
		var got []string
		for _, part := range PartsOf(c.entries) {
			var names []string
			for _, r := range part.Entries {
				names = append(names, r.Name)
			}
			got = append(got, part.Namespace+": "+strings.Join(names, "|"))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestExcludesByFullNameAndGroup(t *testing.T) {
	r := Resource{Name: "*", Exclude: []string{"events", "leases.coordination.k8s.io", "*.metrics.k8s.io"}}
	for name, want := range map[string]bool{
		"events": true, "events.events.k8s.io": false, "leases.coordination.k8s.io": true, "leases": false,
		"pods.metrics.k8s.io": true, "pods": false, "nodes.metrics.k8s.io": true, "x.other.metrics.k8s.io": false,
	} {
		if got := r.Excludes(name); got != want {
			t.Errorf("%s is left out: %t, want %t", name, got, want)
		}
	}
}

func TestNamesOfEvents(t *testing.T) {
	for name, want := range map[string]bool{
		"events": true, "ev": true, "event": true, "events.events.k8s.io": true, "events.v1.events.k8s.io": true, "ev.events.k8s.io": true,
		"events.k8s.io": false, "events.eventing.knative.dev": false, "pods": false, "*": false, "*.events.k8s.io": false, "": false,
	} {
		if isEvents(name) != want {
			t.Errorf("%q stands for events: %t", name, !want)
		}
	}
}
