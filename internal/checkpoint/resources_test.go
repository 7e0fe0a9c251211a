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
	must(t, s.KnowStreams(streams))
	for _, want := range streams {
		if got, found, err := s.Resource(want.String()); err != nil || !found || got != want {
			t.Errorf("%s is %+v, %t, %v", want, got, found, err)
		}
	}
	must(t, save(s, "lake", "1", Item{Kind: Begin, Resource: "nodes", Scope: Others, At: Point{1, "7"}}))
	for _, stream := range streams {
		gone, err := s.ForgetStream(&stream)
		_, found, findErr := s.Resource(stream.String())
		if isNodes := stream.Resource.Name == "nodes"; found != isNodes || gone == isNodes || err != nil || findErr != nil {
			t.Errorf("%s is known: %v, gone: %v (%v, %v)", stream, found, gone, err, findErr)
		}
	}
}
