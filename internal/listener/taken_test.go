package listener

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// TestI4FramesOfAllNamespacesOnDiskAreOfWhoTakesAll: the log of a sink that takes some would say that it was given the
// others, too.
func TestI4FramesOfAllNamespacesOnDiskAreOfWhoTakesAll(t *testing.T) {
	frame := func(kind checkpoint.Kind, id string) *checkpoint.Item {
		return &checkpoint.Item{
			Kind: kind, Resource: "pods", Scope: checkpoint.Others, At: at("9"), Comparison: checkpoint.Comparison{ID: id, Namespace: checkpoint.Others},
		}
	}
	for name, c := range map[string]struct {
		logged, onDisk []*checkpoint.Item
		namespaces     []string // that the sink takes
		want           bool
	}{
		"a begin, of some":      {nil, []*checkpoint.Item{frame(checkpoint.Begin, "9.1")}, []string{"shop"}, true},
		"a begin, of all":       {nil, []*checkpoint.Item{frame(checkpoint.Begin, "9.1")}, []string{"shop", ""}, false},
		"a begin, of none":      {nil, []*checkpoint.Item{frame(checkpoint.Begin, "9.1")}, nil, false},
		"an end, of some":       {[]*checkpoint.Item{frame(checkpoint.Begin, "9.1")}, []*checkpoint.Item{frame(checkpoint.End, "9.1")}, []string{"shop"}, true},
		"what the log has":      {[]*checkpoint.Item{frame(checkpoint.Begin, "9.1")}, []*checkpoint.Item{frame(checkpoint.Bookmark, "")}, []string{"shop"}, false},
		"nothing that is saved": {nil, nil, []string{"shop"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l, books, end := newBus(t, roomy())
			defer end()
			state, err := l.Store.LoadSink("bus")
			must(t, err)
			for _, i := range c.logged {
				must(t, state.Acked(i))
			}
			for _, i := range c.onDisk {
				must(t, state.Spooled(i, false))
			}
			books.states["bus"] = state
			var streams []*change.Stream
			for _, namespace := range c.namespaces {
				streams = append(streams, &change.Stream{Resource: change.Resource{Version: "v1", Name: "pods"}, Namespace: namespace})
			}
			l.Streams = func() []*change.Stream { return streams }
			if have := l.isNarrower(); have != c.want {
				t.Errorf("is narrower: %t", have)
			}
		})
	}
}
