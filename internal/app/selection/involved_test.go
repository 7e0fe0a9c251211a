package selection

import (
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
)

// pod is what is kept of every Pod.
type pod struct{ asked []string }

func (p *pod) Images(stream *change.Stream, key change.Key) (change.Images, error) {
	p.asked = append(p.asked, stream.String()+" "+key.String())
	return change.Images{{UID: "u", Object: []byte(`{"metadata":{"labels":{"a":"b"}}}`)}}, nil
}

func eventsStream(r *config.Resource) *Selected {
	return &Selected{Stream: change.Stream{Resource: change.Resource{Version: "v1", Name: "events", Kind: "Event"}}, Configured: r}
}

// TestI9OnlyKeptStreamsAreAsked: what is not kept, and not streamed any more, is not told.
func TestI9OnlyKeptStreamsAreAsked(t *testing.T) {
	resources := []config.Resource{{Name: "pods", Before: true}, {Name: "nodes"}}
	var current Current
	current.Chosen.Store(chosenOf(t, resources))
	images := &pod{}
	involve := InvolveOf(eventsStream(&config.Resource{Name: "events", Involved: []string{"labels", "labels"}}), &current, images.Images)
	tell := func(kind, namespace string) string {
		rec := &change.Record{
			Stream: &change.Stream{Resource: change.Resource{Version: "v1", Name: "events"}}, Op: change.Added, Key: change.Key{Namespace: "default", Name: "e"},
			Object: []byte(`{"involvedObject":{"kind":"` + kind + `","namespace":"` + namespace + `","name":"n","uid":"u"}}`),
		}
		must(t, involve(rec))
		return string(rec.Involved)
	}
	if got := tell("Pod", "default"); got != `{"labels":{"a":"b"}}` || strings.Join(images.asked, ",") != "pods default/n" {
		t.Errorf("of a Pod: %s, asked for %q", got, images.asked)
	}
	if got := tell("Node", ""); got != `{"unknown":"notstreamed"}` {
		t.Errorf("of a Node, which is not kept: %s", got)
	}
	current.Chosen.Store(&Choice{Streams: []Selected{*eventsStream(&config.Resource{Name: "events", Before: true})}})
	if got := tell("Event", "default"); got != `{"unknown":"notstreamed"}` || len(images.asked) != 1 {
		t.Errorf("of an Event: %s", got)
	}
	current.Chosen.Store(&Choice{})
	if got := tell("Pod", "default"); got != `{"unknown":"notstreamed"}` || len(images.asked) != 1 {
		t.Errorf("of a Pod that is not streamed any more: %s", got)
	}
	if InvolveOf(eventsStream(&config.Resource{Name: "events"}), &current, images.Images) != nil {
		t.Error("nothing is asked for, and looked up")
	}
}
