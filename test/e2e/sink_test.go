package e2e

import "testing"

// someBytes is enough to open a stream, and not enough for a snapshot.
const someBytes = 24 << 10

// TestI4ANewSinkAndALostLogAreMadeWholeThoughTheExporterIsKilled in the middle of the snapshots for that.
func TestI4ANewSinkAndALostLogAreMadeWholeThoughTheExporterIsKilled(t *testing.T) {
	r, network := newProxiedRig(t, world{})
	both := r.exporter.sinks
	r.summon()
	r.writer.populate(t)
	r.exporter.sinks = both[1:]
	r.exporter.start(t)
	r.file.awaitObjects(t, r.exporter, r.writer.finish(t)...)
	r.exporter.stop(t)
	r.exporter.sinks = both
	r.killWithin(network, "initial")
	r.judge(false)

	if err := r.broker.open().js.DeleteStream(t.Context(), streamName); err != nil {
		t.Fatal(err)
	}
	r.writer.disturb(t)
	r.stream = followStream(r.broker)
	r.killWithin(network, "lost")
	r.judge(true)
}

// killWithin starts the exporter, kills it when some bytes have gone to the NATS server, and lets it finish in another
// life, up to the end of the full snapshots of the reason.
func (r *rig) killWithin(network *proxy, reason string) {
	r.t.Helper()
	network.allow(someBytes)
	r.exporter.start(r.t)
	eventually(r.t, deliveryLimit, "the network is exhausted", network.exhausted)
	r.exporter.process.Kill()
	network.reset() // with what is still on its way
	network.allow(-1)
	r.exporter.start(r.t)
	r.await(r.writer.finish(r.t)...)
	for _, resource := range r.resources() {
		r.stream.awaitEnd(r.t, r.exporter, kubectlName(resource), reason)
	}
	r.exporter.stop(r.t)
}

// TestI3I4WhatOneSinkHasAndAnotherNot is told to both, once: beside a sink that is new, where a reconcile waits for
// what is in line, and where the API server has forgotten it.
func TestI3I4WhatOneSinkHasAndAnotherNot(t *testing.T) {
	r, network := newProxiedRig(t, world{gateway: true})
	r.summon()
	r.writer.populate(t)
	r.exporter.start(t)
	r.streaming()
	cutOffStream := func() {
		t.Helper()
		network.allow(0)
		r.writer.disturb(t)
		r.writer.disturb(t)
		r.file.awaitObjects(t, r.exporter, r.writer.finish(t)...)
	}
	cutOffStream()
	r.exporter.process.Kill()
	network.reset()
	network.allow(-1)
	r.exporter.sinks = append(r.exporter.sinks, "file://"+r.path()+".new?name=new")
	r.exporter.start(t)
	r.streaming()
	r.exporter.stop(t)
	r.judge(false)

	r.exporter.start(t)
	r.streaming()
	cutOffStream()
	before := map[string]int{}
	for _, resource := range r.resources() {
		before[resource.Resource] = r.gateway.questions(resource.Resource)
	}
	r.overtake(r.version()) // so that the restarted server has no position
	r.restartAPIServer()
	for plural, asked := range before {
		eventually(t, deliveryLimit, "a watch of "+plural+" has failed and a reconcile begins", func() bool {
			return r.gateway.questions(plural) >= asked+2
		})
	}
	network.allow(-1)
	r.await(r.writer.finish(t)...)

	cutOffStream()
	r.exporter.process.Kill()
	network.reset()
	r.restartAPIServer()
	network.allow(-1)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	r.exporter.stop(t)
	r.judge(true)
}

// newProxiedRig is a rig of the world whose exporter reaches the NATS server through the proxy.
func newProxiedRig(t *testing.T, w world) (*rig, *proxy) {
	t.Helper()
	var network *proxy
	w.toBroker = func(address string) string {
		network = newProxy(t, address)
		return network.address()
	}
	return newRigOf(t, w), network
}
