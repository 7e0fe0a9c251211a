package e2e

import (
	"fmt"
	"testing"
)

// TestI3I4I10ALeaderWithoutItsBrokerLetsAnotherLead: the leader alone is cut off from the broker. It asks in the Lease,
// the other one answers, and leads. When nobody reaches the broker, the leader stays. Nothing is lost or repeated. It
// takes most of a minute, and so needs E2E_FAULTS.
func TestI3I4I10ALeaderWithoutItsBrokerLetsAnotherLead(t *testing.T) {
	if number(t, "E2E_FAULTS", 0) == 0 {
		t.Skip("E2E_FAULTS is not set: make chaos sets it, and runs this")
	}
	r := newRig(t, nil)
	m := newMembers(r, 2)
	networks := map[*exporter]*proxy{}
	for _, x := range m.all {
		networks[x] = newProxy(t, r.broker.address())
		x.configure(t, fmt.Sprintf("- {name: bus, nats: {url: %q, stream: %s}}\nstate: {log: {sink: bus}}\nha: {lease: default/kubecdc, duration: %s}\n",
			"nats://"+networks[x].address(), streamName, lease))
	}
	r.summon()
	r.writer.populate(t)
	m.start()
	r.streaming()
	r.writer.start(t)
	m.change(func(leader *exporter) {
		networks[leader].reset()
		networks[leader].allow(0)
	})
	for _, network := range networks {
		network.reset()
		network.allow(0)
	}
	m.lead.awaitLine(t, "it asks the others whether they do")
	if !m.lead.leads(t) {
		t.Errorf("the leader gave up though nobody reaches the broker:\n%s", m.lead.lastLines(t))
	}
	for _, network := range networks {
		network.reset()
		network.allow(-1)
	}
	m.r.stream.awaitMore(t, m.lead, len(m.r.stream.all(t))+20)
	r.settle()
	for _, x := range m.all {
		m.stop(x)
	}
	r.judge(false)
}
