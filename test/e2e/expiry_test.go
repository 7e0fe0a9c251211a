package e2e

import (
	"maps"
	"slices"
	"testing"

	"github.com/kubecdc/kubecdc/test/testcluster"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestI2I5EventsThatExpireTogetherAreDeletedOnce: their deletes share one version, and the exporter is killed between
// them.
func TestI2I5EventsThatExpireTogetherAreDeletedOnce(t *testing.T) {
	var network *proxy
	r := newRigOf(t, world{
		kinds:   []*kind{{resource: core("events"), namespace: "shop", names: numbered("event", 120), manifest: coreEvent}},
		cluster: testcluster.Options{CompactionInterval: -1, APIServerFlags: []string{"--event-ttl=20s"}},
		toBroker: func(address string) string {
			network = newProxy(t, address)
			return network.address()
		},
	})
	r.summon()
	r.exporter.start(t)
	r.writer.populate(t)
	uids := r.writer.there()
	r.await(uids...)
	r.exporter.stop(t)
	eventually(t, deliveryLimit, "the events have expired", func() bool {
		left := 0
		r.eachListed(core("events"), func(*unstructured.Unstructured) { left++ })
		return left == 0
	})
	uids = slices.Collect(maps.Keys(r.ledger.histories)) // the server may have told of itself, too
	r.witness.awaitDeletes(t, uids)
	for _, uid := range uids {
		r.ledger.deleted(uid, 0)
	}
	between := 0
	for range 3 {
		network.allow(fewBytes)
		r.exporter.start(t)
		eventually(t, deliveryLimit, "the network is exhausted", network.exhausted)
		r.exporter.process.Kill()
		network.reset()
		between += r.partlyDeleted()
	}
	if between == 0 {
		t.Error("no kill was between deletes that share a version")
	}
	network.allow(-1)
	r.exporter.start(t)
	for _, sink := range r.sinks() {
		for _, uid := range uids {
			sink.await(t, r.exporter, "the delete of "+uid, func(e *event) bool { return e.UID == uid && e.op() == "deleted" })
		}
	}
	r.exporter.stop(t)
	r.judge(false)
}

// fewBytes is enough to open a stream and to write some of the deletes that share a version.
const fewBytes = 16 << 10

// partlyDeleted is how many versions of deletes are in the stream with some of their deletes and not all.
func (r *rig) partlyDeleted() (versions int) {
	r.t.Helper()
	told, all := map[uint64]int{}, map[uint64]int{}
	for _, e := range r.stream.all(r.t) {
		if e.op() == "deleted" {
			told[e.version()]++
		}
	}
	for _, version := range r.witness.deletions() {
		all[version]++
	}
	for version, n := range told {
		if n < all[version] {
			versions++
		}
	}
	return versions
}

func coreEvent() map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Event", "type": "Normal", "reason": "Tested", "message": "a test wrote this",
		"involvedObject": map[string]any{"kind": "Pod", "namespace": "shop", "name": "pod-0", "apiVersion": "v1"},
	}
}
