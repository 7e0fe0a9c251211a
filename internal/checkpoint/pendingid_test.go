package checkpoint

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestAnIDIsOfOnePendingSnapshot: the same in each life and each version of the exporter.
func TestAnIDIsOfOnePendingSnapshot(t *testing.T) {
	base := PendingSnapshot{Stream: "pods", Owed: change.Owed{Sink: "bus", Reason: change.Requested, Generation: 1}}
	if got := base.ID(); got != "7mare7x" {
		t.Errorf("the ID is %s", got)
	}
	for i, change := range []func(*PendingSnapshot){
		func(p *PendingSnapshot) { p.Stream = "nodes" }, func(p *PendingSnapshot) { p.Sink = "lake" },
		func(p *PendingSnapshot) { p.Reason = "resync" }, func(p *PendingSnapshot) { p.Generation = 2 },
		func(p *PendingSnapshot) { p.Sink, p.Stream = "buspods", "" },
	} {
		other := base
		if change(&other); other.ID() == base.ID() {
			t.Errorf("%d: %+v has the ID of %+v", i, other, base)
		}
	}
}
