package e2e

import "testing"

// someBytes is enough to open a stream, and not enough for a snapshot.
const someBytes = 24 << 10

func TestI4ANewSinkGetsItsSnapshotThoughTheExporterIsKilled(t *testing.T) {
	r, network := newProxiedRig(t)
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
}

func TestI4ALostLogIsAGapThoughTheExporterIsKilled(t *testing.T) {
	r, network := newProxiedRig(t)
	r.writer.populate(t)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	r.exporter.stop(t)
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

func TestI4WhatOnlyOneSinkSawIsDeletedInBoth(t *testing.T) {
	r, network := newProxiedRig(t)
	r.writer.populate(t)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	network.allow(0)
	r.writer.disturb(t)
	r.writer.disturb(t)
	r.file.awaitObjects(t, r.exporter, r.writer.finish(t)...)
	r.exporter.process.Kill()
	network.reset()
	r.restartAPIServer()
	network.allow(-1)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	r.exporter.stop(t)
	r.judge(true)
}

// TestI3AReconcileWaitsForWhatIsInLine: what one sink has and the other has not yet is not told again.
func TestI3AReconcileWaitsForWhatIsInLine(t *testing.T) {
	var network *proxy
	r := newRigOf(t, world{gateway: true, toBroker: func(address string) string {
		network = newProxy(t, address)
		return network.address()
	}})
	r.writer.populate(t)
	r.exporter.start(t)
	r.streaming()
	network.allow(0)
	r.writer.disturb(t)
	r.file.awaitObjects(t, r.exporter, r.writer.finish(t)...)
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
	r.exporter.stop(t)
	r.judge(true)
}

func TestI4ANewSinkUndoesNothingInTheOthers(t *testing.T) {
	r, network := newProxiedRig(t)
	r.summon()
	r.writer.populate(t)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	network.allow(0)
	r.writer.disturb(t)
	r.file.awaitObjects(t, r.exporter, r.writer.finish(t)...)
	r.exporter.process.Kill()
	network.reset()
	network.allow(-1)
	r.exporter.sinks = append(r.exporter.sinks, "file://"+r.path()+".new?name=new")
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	r.exporter.stop(t)
	r.judge(false)
}

// newProxiedRig is a rig whose exporter reaches the NATS server through the proxy.
func newProxiedRig(t *testing.T) (*rig, *proxy) {
	t.Helper()
	var network *proxy
	r := newRig(t, func(address string) string {
		network = newProxy(t, address)
		return network.address()
	})
	return r, network
}
