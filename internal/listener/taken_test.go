package listener

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestI4WhatIsOnDiskIsDeliveredWhateverIsConfigured: what is read is of today's version, and the rest is as it was.
func TestI4WhatIsOnDiskIsDeliveredWhateverIsConfigured(t *testing.T) {
	l, _, end := newBus(t, roomy())
	defer end()
	stream := func(version, namespace string) *change.Stream {
		return &change.Stream{Resource: change.Resource{Version: version, Name: "pods"}, Namespace: namespace}
	}
	l.Streams = func() []*change.Stream { return []*change.Stream{stream("v1", "shop")} }
	of := func(namespace string, op change.Op) *change.Record {
		return &change.Record{Stream: stream("v1beta1", ""), Op: op, Key: change.Key{Namespace: namespace, Name: "web"}}
	}
	read := l.today([]*change.Record{of("shop", change.Added), of("left", change.Added), of("", change.Gap), of("", change.Actor)})
	if len(read) != 3 || *read[0].Stream != *stream("v1", "shop") || read[1].Stream.Resource.Version != "v1beta1" || read[2].Op != change.Gap {
		t.Errorf("of what is on disk the sink is given %v", read)
	}
}
