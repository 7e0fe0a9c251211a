package selection

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/source"
)

var (
	pods        = change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}
	nodes       = change.Resource{Version: "v1", Name: "nodes", Kind: "Node", ClusterScoped: true}
	deployments = change.Resource{Group: "apps", Version: "v1", Name: "deployments", Kind: "Deployment"}
	events      = change.Resource{Version: "v1", Name: "events", Kind: "Event"}
	newEvents   = change.Resource{Group: "events.k8s.io", Version: "v1", Name: "events", Kind: "Event"}
	betas       = change.Resource{Group: "apps", Version: "v1beta1", Name: "deployments", Kind: "Deployment"}
)

// served stands for an API server.
type served map[string][]change.Resource

func (s served) Resolve(name string) ([]change.Resource, error) {
	if found := s[name]; found != nil || source.IsWildcard(name) {
		return slices.Clone(found), nil
	}
	return nil, &source.UnknownResourceError{Name: name}
}

func (s served) Names() []string { return slices.Sorted(maps.Keys(s)) }

func (s served) LeftOut(string) []source.LeftOut { return nil }

func everything() served {
	return served{
		"pods": {pods}, "po": {pods}, "nodes": {nodes}, "deployments.apps": {deployments}, "deployments.v1beta1.apps": {betas},
		"*": {deployments, nodes, pods}, "*.apps": {deployments}, "*.nodes": {nodes},
		"*.k8s": {events}, "*.events.k8s.io": {newEvents}, "events.events.k8s.io": {newEvents},
	}
}

// described is a stream on one line: its name, its selector, and the configured names that stand for it.
func described(c *Choice) []string {
	var all []string
	for _, s := range c.Streams {
		all = append(all, strings.Join([]string{s.Stream.String(), s.Selection.LabelSelector, strings.Join(s.Names, "+")}, " "))
	}
	return all
}

func TestOneObjectIsInOneStream(t *testing.T) {
	type resources = []config.Resource
	for _, c := range []struct {
		name       string
		configured resources
		want       []string
	}{
		{"two names of one resource", resources{{Name: "pods"}, {Name: "po"}}, []string{"pods  pods+po"}},
		{"a namespace given twice", resources{{Name: "pods", Namespaces: []string{"a", "b", "a"}}}, []string{"a/pods  pods", "b/pods  pods"}},
		{"namespaces that differ", resources{{Name: "pods", Namespaces: []string{"a"}}, {Name: "po", Namespaces: []string{"b"}, LabelSelector: "x"}},
			[]string{"a/pods  pods", "b/pods x po"}},
		{"wildcard before a name", resources{{Name: "*"}, {Name: "pods", LabelSelector: "x"}},
			[]string{"pods x pods+*", "deployments.apps  *", "nodes  *"}},
		{"wildcard after a name of some namespaces", resources{{Name: "pods", Namespaces: []string{"a", "b"}}, {Name: "*"}},
			[]string{"a/pods  pods+*", "b/pods  pods+*", "deployments.apps  *", "nodes  *"}},
		{"wildcard and another version", resources{{Name: "*"}, {Name: "deployments.v1beta1.apps"}},
			[]string{"deployments.apps  deployments.v1beta1.apps+*", "nodes  *", "pods  *"}},
		{"two wildcards", resources{{Name: "*"}, {Name: "*.apps"}}, []string{"deployments.apps  *+*.apps", "nodes  *", "pods  *"}},
		{"wildcards that differ of what only one has", resources{{Name: "*", Exclude: []string{"*.gadgets"}}, {Name: "*.gadgets", LabelSelector: "x"}},
			[]string{"deployments.apps  *", "nodes  *", "pods  *"}},
		{"wildcards that differ of namespaces", resources{{Name: "*", Namespaces: []string{"a"}}, {Name: "*.apps", Namespaces: []string{"b"}, LabelSelector: "x"}},
			[]string{"a/deployments.apps  *", "a/pods  *", "b/deployments.apps x *.apps"}},
		{"wildcard of a namespace leaves out what has none", resources{{Name: "*", Namespaces: []string{"a"}}},
			[]string{"a/deployments.apps  *", "a/pods  *"}},
		{"a wildcard that leaves out", resources{{Name: "*", Exclude: []string{"pods"}}}, []string{"deployments.apps  *", "nodes  *"}},
		{"a wildcard that leaves out what is named", resources{{Name: "*", Exclude: []string{"pods"}}, {Name: "po"}},
			[]string{"pods  po", "deployments.apps  *", "nodes  *"}},
		{"a wildcard that leaves out a group", resources{{Name: "*", Exclude: []string{"*.apps"}}}, []string{"nodes  *", "pods  *"}},
		{"a wildcard that stands for nothing", resources{{Name: "pods"}, {Name: "*.example.com"}}, []string{"pods  pods"}},
		{"one object under two names of a wildcard", resources{{Name: "*.k8s"}, {Name: "*.events.k8s.io"}}, []string{"events  *.k8s"}},
		{"one object under two names, the other way round", resources{{Name: "*.events.k8s.io"}, {Name: "*.k8s"}}, []string{"events.events.k8s.io  *.events.k8s.io"}},
		{"one object under two names, one of them given", resources{{Name: "*.k8s"}, {Name: "events.events.k8s.io"}},
			[]string{"events.events.k8s.io  events.events.k8s.io"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, errs := Choose(everything(), c.configured)
			must(t, usage.Several("resources", errs...))
			if got := described(found); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestContradictingResourcesAreRefused(t *testing.T) {
	type resources = []config.Resource
	const apart = `resource "*.apps": "*" stands for the same, with other selectors, namespaces or rules: leave it out there with exclude: ["*.apps"]`
	const remedy = "with other selectors, namespaces, rules or version: configure it in one place"
	for _, c := range []struct {
		name       string
		configured resources
		want       string
	}{
		{"selectors", resources{{Name: "pods"}, {Name: "po", LabelSelector: "x"}}, `resource "po": pods is configured already as "pods", ` + remedy},
		{"all namespaces and one", resources{{Name: "pods"}, {Name: "po", Namespaces: []string{"a"}}}, `resource "po": pods is configured already as "pods", ` + remedy},
		{"versions", resources{{Name: "deployments.apps"}, {Name: "deployments.v1beta1.apps"}},
			`resource "deployments.v1beta1.apps": deployments.apps is configured already as "deployments.apps", ` + remedy},
		{"wildcards", resources{{Name: "*"}, {Name: "*.apps", LabelSelector: "x"}}, apart},
		{"wildcards, before there is anything", resources{{Name: "*.gadgets", Ops: []string{"added"}}, {Name: "*"}}, strings.ReplaceAll(apart, "apps", "gadgets")},
		{"wildcards of namespaces", resources{{Name: "*", Namespaces: []string{"a"}}, {Name: "*.apps"}}, apart},
		{"cluster-scoped", resources{{Name: "nodes", Namespaces: []string{"a", "b"}}}, `resource "nodes": it is cluster-scoped and has no namespaces: leave out namespaces a, b`},
		{"several", resources{{Name: "x"}, {Name: "pods"}, {Name: "y"}}, "resources: 2 problems:\n" +
			"  resource \"x\": the API server serves no such resource: see kubectl api-resources\n" +
			"  resource \"y\": the API server serves no such resource: see kubectl api-resources"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, errs := Choose(everything(), c.configured)
			for i := range errs {
				errs[i] = explain("", errs[i])
			}
			err := usage.Several("resources", errs...)
			if err == nil || err.Error() != c.want {
				t.Fatalf("got  %v\nwant %s", err, c.want)
			}
			if !usage.Is(err) {
				t.Errorf("%v is no mistake of the user's", err)
			}
		})
	}
}

// TestNamespacesAreLeftOutByTheServer: a field selector does it, of what has namespaces.
func TestNamespacesAreLeftOutByTheServer(t *testing.T) {
	chosen, errs := Choose(everything(), []config.Resource{{Name: "*", FieldSelector: "metadata.name!=x", ExcludeNamespaces: []string{"a", "b"}}})
	must(t, errors.Join(errs...))
	for _, s := range chosen.Streams {
		want := "metadata.name!=x,metadata.namespace!=a,metadata.namespace!=b"
		if s.Stream.Resource.ClusterScoped {
			want = "metadata.name!=x"
		}
		if s.Selection.FieldSelector != want {
			t.Errorf("%s is selected by %q, want %q", s.Stream, s.Selection.FieldSelector, want)
		}
	}
}

// TestI4WhatIsLeftOutIsSaid with its reason.
func TestI4WhatIsLeftOutIsSaid(t *testing.T) {
	configured := []config.Resource{{Name: "*.nodes", Namespaces: []string{"a"}}, {Name: "*.apps", Exclude: []string{"deployments.apps"}}, {Name: "*.none"}}
	chosen, errs := Choose(everything(), configured)
	must(t, errors.Join(errs...))
	want := []source.LeftOut{
		{Name: "nodes", Reason: "cluster-scoped, and *.nodes is of namespaces"}, {Name: "deployments.apps", Reason: "excluded by the configuration"},
		{Name: "*.none", Reason: "it stands for nothing that the API server serves"},
	}
	if !slices.Equal(chosen.Left, want) {
		t.Errorf("left out are %+v, want %+v", chosen.Left, want)
	}
}

// TestI4ACustomResourceThatIsNotInstalledWaits, and says so; a name that nobody can install is a mistake.
func TestI4ACustomResourceThatIsNotInstalledWaits(t *testing.T) {
	for _, c := range []struct {
		configured config.Resource
		want       string // why it waits; "" is a mistake
	}{
		{config.Resource{Name: "gears.example.com"}, "the API server does not serve it yet"},
		{config.Resource{Name: "gears.v1beta1.example.com"}, "the API server does not serve it yet"},
		{config.Resource{Name: "gears.v2ray.io"}, "the API server does not serve it yet"},
		{config.Resource{Name: "event.events.k8s.io"}, "the API server does not serve it yet; did you mean events.events.k8s.io?"},
		{config.Resource{Name: "gears.example.com", Required: true}, ""},
		{config.Resource{Name: "gears"}, ""},
		{config.Resource{Name: "gears.apps"}, ""},
		{config.Resource{Name: "deployments.v7.apps"}, ""},
	} {
		chosen, errs := Choose(everything(), []config.Resource{c.configured})
		var why string
		for _, left := range chosen.Waiting() {
			why += left.Reason
		}
		if why != c.want || (errors.Join(errs...) == nil) != (c.want != "") {
			t.Errorf("%+v: waits since %q, want %q; errors %v", c.configured, why, c.want, errs)
		}
	}
}

func TestUnknownResourceIsAMistakeOnlyIfTheServerToldAll(t *testing.T) {
	whole := explain("https://k", &source.UnknownResourceError{Name: "foos"})
	partial := explain("https://k", &source.UnknownResourceError{Name: "foos", Cause: errors.New("cause")})
	if !usage.Is(whole) || usage.Is(partial) {
		t.Errorf("%v and %v", whole, partial)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
