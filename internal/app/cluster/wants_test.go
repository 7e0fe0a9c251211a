package cluster

import (
	"errors"
	"slices"
	"testing"

	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/source"
)

// catalogOf is an API server of three resources, all of which * stands for.
type catalogOf struct{}

func (catalogOf) Resolve(name string) ([]change.Resource, error) {
	all := []change.Resource{
		{Version: "v1", Name: "pods", Kind: "Pod"}, {Group: "apps", Version: "v1", Name: "deployments", Kind: "Deployment"},
		{Version: "v1", Name: "nodes", Kind: "Node", ClusterScoped: true},
	}
	if name == "*" {
		return all, nil
	}
	return all[:1], nil
}

func (catalogOf) Names() []string { return nil }

func (catalogOf) LeftOut(string) []source.LeftOut { return nil }

// TestSinkWantsByConfiguredNames: a wildcard's sink gets what is configured by name, too.
func TestSinkWantsByConfiguredNames(t *testing.T) {
	var c Cluster
	configured := []config.Resource{{Name: "*"}, {Name: "pods"}}
	chosen, errs := selection.Choose(catalogOf{}, configured)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	c.Chosen.Store(chosen)
	for _, s := range []struct {
		wants []string
		want  []string
	}{
		{[]string{"pods"}, []string{"pods"}},
		{[]string{"*"}, []string{"pods", "deployments.apps", "nodes"}},
	} {
		wanted := c.WantedBy(&config.Sink{Resources: s.wants})
		var got []string
		for _, stream := range c.Streams() {
			if wanted(&stream.Stream) {
				got = append(got, stream.Stream.String())
			}
		}
		if !slices.Equal(got, s.want) {
			t.Errorf("%q gets %q, want %q", s.wants, got, s.want)
		}
	}
	if c.WantedBy(&config.Sink{}) != nil {
		t.Error("a sink that names nothing does not get all")
	}
}
