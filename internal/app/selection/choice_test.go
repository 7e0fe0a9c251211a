package selection

import (
	"errors"
	"fmt"
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

// TestOneObjectIsInOneStream, of the names that stand for it, or what contradicts that is the user's mistake. What is
// left out is said (I4), and what is not installed waits; a name that nobody can install is a mistake.
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
			told := described(found)
			for i, s := range found.Streams {
				if fields := s.Selection.FieldSelector; fields != "" {
					told[i] += ", fields " + fields
				}
			}
			for _, left := range found.Left {
				told = append(told, fmt.Sprintf("- %s, waits %t: %s", left.Name, left.Waits, left.Reason))
			}
			return strings.Join(told, "\n   ")
		}
		if !usage.Is(err) {
			t.Errorf("%v is no mistake of the user's", err)
		}
		return err.Error()
	})
}

func TestUnknownResourceIsAMistakeOnlyIfTheServerToldAll(t *testing.T) {
	whole := explain("https://k", &source.UnknownResourceError{Name: "foos"})
	partial := explain("https://k", &source.UnknownResourceError{Name: "foos", Cause: errors.New("cause")})
	if !usage.Is(whole) || usage.Is(partial) {
		t.Errorf("%v and %v", whole, partial)
	}
}

var must = script.Must
