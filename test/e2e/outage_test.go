package e2e

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecdc/kubecdc/test/testcluster"
)

// shortMemory is a world whose API server keeps etcd's history for two intervals at most. Of Events it has no other;
// the watches of what it caches go further back.
func shortMemory(interval time.Duration) world {
	return world{
		cluster: testcluster.Options{CompactionInterval: interval},
		kinds: []*kind{
			{resource: core("pods"), namespace: "shop", names: numbered("pod", 8), manifest: pod},
			{resource: core("configmaps"), namespace: "shop", names: numbered("map", 8), manifest: configMap},
			{resource: core("events"), namespace: "shop", names: numbered("event", 8), manifest: coreEvent},
		},
	}
}

// statesStream is the JetStream stream of a sink that wants states, not history.
const statesStream = "STATES"

// followStates reads that stream.
func (r *rig) followStates() *follower {
	log := r.broker.open()
	log.name = statesStream
	return &follower{name: statesStream, more: func(ctx context.Context, have int) ([]event, error) { return log.read(ctx, uint64(have)+1) }}
}

// configurePolicies gives the exporter a sink that spools, one that coalesces, both in the NATS server, and a file.
func (r *rig) configurePolicies() {
	r.t.Helper()
	r.exporter.configure(r.t, fmt.Sprintf(`- {name: nats, nats: {url: "nats://%[1]s", stream: %[2]s}, queue: {records: 40, full: spool}}
- {name: states, nats: {url: "nats://%[1]s", stream: %[3]s, subject: "states.{resource}.{name}"}, queue: {records: 400, full: coalesce}}
- {name: file, file: {path: %[4]q}}
`, r.broker.address(), streamName, statesStream, r.path()))
}

// outlive returns when the API server has forgotten how things came to be as they are at its begin.
func (r *rig) outlive(meanwhile func()) {
	r.t.Helper()
	before := r.version()
	eventually(r.t, deliveryLimit, "the API server has forgotten version "+before, func() bool {
		meanwhile()
		return r.hasForgotten(before)
	})
}

// forget makes etcd forget its history up to now, the version before it included.
func (r *rig) forget(before string) {
	r.t.Helper()
	if _, err := r.cluster.Compact(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	if !r.hasForgotten(before) {
		r.t.Fatalf("the API server lists events of version %s, want status 410: its history is not gone", before)
	}
}

func (r *rig) hasForgotten(version string) bool {
	list := metav1.ListOptions{ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	_, err := r.client.Resource(core("events")).Namespace("shop").List(r.t.Context(), list)
	return apierrors.IsResourceExpired(err)
}

// TestI1I3I4AnOutageLongerThanHistoryCostsASpoolingSinkNothing: nor does it delay the other sink; one that coalesces
// has the state that there is, and what was merged away for it is counted.
func TestI1I3I4AnOutageLongerThanHistoryCostsASpoolingSinkNothing(t *testing.T) {
	r := newRigOf(t, shortMemory(time.Hour))
	r.configurePolicies()
	r.summon()
	r.writer.populate(t)
	r.exporter.start(t)
	r.streaming()
	states := r.followStates()
	r.writer.start(t)
	r.broker.kill()
	before := r.version()
	r.file.awaitMore(t, r.exporter, len(r.file.all(t))+200)
	r.writer.stop(t)
	r.file.awaitObjects(t, r.exporter, r.writer.finish(t)...) // so that no watch stands before what is forgotten
	r.forget(before)
	r.expectBackPressure()
	r.writer.change(t, 3)
	last := r.writer.finish(t)
	r.file.awaitObjects(t, r.exporter, last...) // which the others lack
	r.broker.start()
	r.await(last...)
	states.awaitObjects(t, r.exporter, last...)
	r.expectStates(states)
	t.Logf("the exporter had %s in memory at most", r.exporter.peakMemory(t))
	r.exporter.stop(t)
	r.judge(false)
}

// expectBackPressure looks at how the exporter shows the outage, which is no reason to restart it.
func (r *rig) expectBackPressure() {
	r.t.Helper()
	r.exporter.get(r.t, "/readyz")
	r.exporter.get(r.t, "/healthz")
	// What the sink of states holds the position at is not on disk, but in the queue, which may exceed its limit.
	spooled, queued := r.exporter.metric(r.t, `kubecdc_spool_bytes{sink="nats"}`), r.exporter.metric(r.t, `kubecdc_queue_records{sink="nats"}`)
	if !(spooled >= 1 || queued >= 40) {
		r.t.Errorf("during the outage %v bytes are spooled and %v records queued, want 1 byte or more, or a full queue", spooled, queued)
	}
}

// expectStates holds what is in the stream of states: all that the file has, but for what was counted as merged, and
// that is right.
func (r *rig) expectStates(states *follower) {
	r.t.Helper()
	told, full := states.all(r.t), r.file.all(r.t)
	merged := int(r.exporter.metric(r.t, `kubecdc_queue_coalesced_total{sink="states"}`))
	if merged < 100 || len(told)+merged != len(full) {
		r.t.Errorf("%d events, and %d merged, of %d; want at least 100 merged", len(told), merged, len(full))
	}
	r.expectRight(told)
	r.t.Logf("%s: %s, %d merged", statesStream, figures(told), merged)
}

// expectRight holds what a sink of states was told: of each object the versions rise, and the last is as the API server
// has it.
func (r *rig) expectRight(told []event) {
	r.t.Helper()
	j := newJudge(statesStream, r.ledger.histories, false)
	newest := map[string]uint64{}
	for i := range told {
		e := &told[i]
		if e.UID != "" && e.version() <= newest[e.UID] {
			j.fault("version %d follows version %d:\n%s", e.version(), newest[e.UID], e)
		}
		newest[e.UID] = e.version()
		j.note(e)
	}
	r.compareState(j)
	j.verdict(r.t)
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakMemory is the most memory that the process had, in MiB, where the system tells.
func (x *exporter) peakMemory(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", x.process.Cmd.Process.Pid))
	found := highWater.FindSubmatch(text)
	if err != nil || found == nil {
		return "an unknown amount"
	}
	kilobytes, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d MiB", kilobytes>>10)
}

// TestI4AnOutageLongerThanHistoryIsAGapForASinkThatBlocks: the gap is announced, and the state is right.
func TestI4AnOutageLongerThanHistoryIsAGapForASinkThatBlocks(t *testing.T) {
	world := shortMemory(2 * time.Second)
	world.gateway = true
	r := newRigOf(t, world)
	r.queue("block")
	r.writer.populate(t)
	r.exporter.start(t)
	r.streaming()
	r.writer.start(t)
	r.broker.kill()
	eventually(t, deliveryLimit, "the queue is full", func() bool {
		return r.exporter.metric(t, `kubecdc_queue_records{sink="nats"}`) >= 40
	})
	for range 2 { // a watch that was idle gets on by one record
		r.outlive(r.gateway.cut) // what is on its way is not forgotten
	}
	r.exporter.get(t, "/readyz")
	r.exporter.get(t, "/healthz")
	r.writer.stop(t)
	r.broker.start()
	r.await(r.writer.finish(t)...)
	if reason := r.exporter.status(t, "events").LastGap.Reason; reason != "gone" {
		t.Errorf("/statusz says that the last gap of events is %q, want gone", reason)
	}
	r.exporter.stop(t)
	for _, j := range r.judge(true) {
		if j.course("events").count("gone") == 0 {
			t.Errorf("sink %s has no gap of events", j.sink)
		}
	}
}
