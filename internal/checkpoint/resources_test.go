package checkpoint

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

func TestAResourceIsKnownUntilItsStreamIsOver(t *testing.T) {
	s := open(t, t.TempDir())
	streams := []change.Stream{
		{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}, Namespace: "shop"},
		{Resource: change.Resource{Version: "v1", Name: "nodes", Kind: "Node", ClusterScoped: true}},
		{Resource: change.Resource{Group: "example.com", Version: "v1beta1", Name: "widgets", Kind: "Widget"}},
	}
	if err := s.Commit(Batch{Resources: streams}); err != nil {
		t.Fatal(err)
	}
	for _, want := range streams {
		if got, found, err := s.Resource(want.String()); err != nil || !found || got != want {
			t.Errorf("%s is %+v, %t, %v", want, got, found, err)
		}
	}
	if err := s.Commit(Batch{Over: []string{"shop/pods"}, OnDisk: true}); err != nil {
		t.Fatal(err)
	}
	if _, found, err := s.Resource("shop/pods"); !found || err != nil {
		t.Errorf("a stream that is over while records of it are on disk has a resource %t, %v", found, err)
	}
	if err := s.SetPosition("nodes", change.Position{ResourceVersion: "7"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(Batch{Over: []string{"nodes"}}); err != nil {
		t.Fatal(err)
	}
	_, found, err := s.Resource("nodes")
	_, positioned, positionErr := s.Position("nodes")
	if found || positioned || err != nil || positionErr != nil {
		t.Errorf("a stream that is over has a resource %t, a position %t, %v, %v", found, positioned, err, positionErr)
	}
}
