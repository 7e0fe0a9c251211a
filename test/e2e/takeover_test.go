package e2e

import (
	"testing"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// kafkaTakenOver starts a second exporter with a state of its own and the same transactional id, while the first one
// works. The topics have one partition each, so that the judge sees where one ends and the other begins.
func kafkaTakenOver(t *testing.T, c *kafka.Cluster, delivery string) {
	id := "only-one-" + delivery
	bus := kafkaSink{name: "bus", prefix: "to." + delivery + ".", delivery: delivery,
		more: ", transactionalId: " + id + ", partitions: 1, replication: 3, minInsyncReplicas: 2"}
	r := newKafkaRig(t, c, bus)
	r.file = nil // it has what the first exporter read and could not deliver to the other sink
	r.world.begunAnew = true
	r.summon()
	r.writer.populate(t)
	r.exporter.start(t)
	r.streaming() // the first snapshots are whole
	r.writer.start(t)
	r.topics[0].awaitMore(t, r.exporter, len(r.topics[0].all(t))+100)
	first := r.exporter
	r.exporter = r.newExporter("second")
	r.exporter.configure(t, bus.config(c))
	r.exporter.start(t)
	first.awaitLine(t, "open transactional id "+id+": another exporter has taken it over: stop it, or give each its own kafka.transactionalId: ")
	r.topics[0].awaitMore(t, r.exporter, len(r.topics[0].all(t))+300)
	r.writer.stop(t)
	r.streaming()
	r.stopIdle()
	r.awaitTransactions(c, bus)
	for _, j := range r.judge(false) {
		for resource, course := range j.courses {
			if n := course.count("initial"); n != 2 {
				t.Errorf("%s has %d first snapshots, want one of each exporter", resource, n)
			}
		}
	}
}
