package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// largeMap is so large that some two hundred of them are more than what the exporter reads ahead of a position that
// stands still.
func largeMap() map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"large": strings.Repeat("0123456789", 20_000)}}
}

// TestI1I3ACoalescingSinkThatIsAwayHoldsUpNobody: what waits for it goes to disk when others would have to wait. Behind
// a kill of the exporter, and when the broker is back, the state is right.
func TestI1I3ACoalescingSinkThatIsAwayHoldsUpNobody(t *testing.T) {
	r := newRigOf(t, world{kinds: []*kind{
		{resource: core("configmaps"), namespace: "shop", names: numbered("map", 8), manifest: largeMap},
		{resource: core("configmaps"), namespace: "shop-2", names: numbered("map", 8), manifest: largeMap},
	}})
	r.exporter.configure(t, fmt.Sprintf(`- {name: states, nats: {url: "nats://%s", stream: %s}, queue: {bytes: 8Mi, records: 400, full: coalesce}}
- {name: file, file: {path: %q}, queue: {bytes: 2Mi}}
`, r.broker.address(), statesStream, r.path()))
	states := r.followStates()
	r.stream = nil // there is no other
	r.summon()
	r.writer.populate(t)
	r.exporter.start(t)
	r.streaming()
	states.awaitObjects(t, r.exporter, r.writer.finish(t)...)
	r.broker.kill()
	r.writer.change(t, 120)
	r.await(r.writer.finish(t)...) // the file has 40 MB and more
	eventually(t, deliveryLimit, "what waits goes to disk", func() bool {
		return r.exporter.metric(t, `kubecdc_spool_bytes{sink="states"}`) > 0
	})
	merged := r.exporter.metric(t, `kubecdc_queue_coalesced_total{sink="states"}`)
	if merged < 50 {
		t.Errorf("%v records were merged, want 50 or more", merged)
	}
	r.writer.change(t, 10)
	r.exporter.process.Kill()
	r.exporter.start(t)
	r.writer.change(t, 20)
	last := r.writer.finish(t)
	r.await(last...)
	r.broker.start()
	states.awaitObjects(t, r.exporter, last...)
	t.Logf("the exporter had %s in memory at most", r.exporter.peakMemory(t))
	r.exporter.stop(t)
	told := states.all(t)
	r.expectRight(told)
	t.Logf("%d events of states, %d in the file", len(told), len(r.file.all(t)))
	r.judge(false)
}
