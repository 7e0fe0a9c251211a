package selection

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/source"
	"github.com/kubecdc/kubecdc/test/script"
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

// TestOneObjectIsInOneStream, of the names that stand for it, or what contradicts that is the user's mistake.
func TestOneObjectIsInOneStream(t *testing.T) {
	script.Run(t, "testdata/choices.txt", func(text string) string {
		cfg, err := config.Parse("c.yaml", []byte(text), os.LookupEnv)
		must(t, err)
		found, errs := Choose(everything(), cfg.Resources)
		for i := range errs {
			errs[i] = explain("", errs[i])
		}
		err = usage.Several("resources", errs...)
		if err == nil {
			return strings.Join(described(found), "\n   ")
		}
		if !usage.Is(err) {
			t.Errorf("%v is no mistake of the user's", err)
		}
		return err.Error()
	})
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

var must = script.Must
