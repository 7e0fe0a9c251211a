package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// kafkaWaitsForReplicas takes away a replica without which the topics take nothing: both deliveries wait, say why, and
// go on when it is back, also where the exporter is killed meanwhile.
func kafkaWaitsForReplicas(t *testing.T, c *kafka.Cluster) {
	const all = ", partitions: 1, replication: 3, minInsyncReplicas: 3"
	plain := kafkaSink{name: "idempotent", prefix: "wi.dev.", delivery: "idempotent", more: all}
	whole := kafkaSink{name: "transactional", prefix: "wt.dev.", delivery: "transactional", more: all}
	r := newKafkaRig(t, c, plain, whole)
	r.summon()
	r.writer.populate(t)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	for _, resource := range r.names() {
		eventually(t, deliveryLimit, "the first snapshot of "+resource+" is saved", func() bool {
			return r.exporter.status(t, resource).ResourceVersion != ""
		})
	}
	begun := len(r.file.all(t))

	if err := c.Kill(c.NodeIDs()[0]); err != nil {
		t.Fatal(err)
	}
	r.writeUntaken("NOT_ENOUGH_REPLICAS")
	r.expectUnsaved(begun, 1)
	r.exporter.process.Kill()
	r.exporter.start(t)
	r.writeUntaken("")
	r.expectUnsaved(begun, 0) // a life that has saved nothing shows no position
	ctx, cancel := context.WithTimeout(t.Context(), scenarioLimit)
	defer cancel()
	if err := c.StartNodes(ctx); err != nil {
		t.Fatal(err)
	}
	r.await(r.writer.finish(t)...)
	for _, sink := range r.topics {
		eventually(t, deliveryLimit, sink.name+" is well again", func() bool { return r.exporter.sinkStatus(t, sink.name).LastError == "" })
	}
	r.stopIdle()
	r.awaitTransactions(c, whole)
	r.judge(false)
}

// writeUntaken makes changes that only the file takes. It returns when the sinks in Kafka name the cause, and what to
// do. The topics cannot be read meanwhile: a leader that is new does not say where they end.
func (r *rig) writeUntaken(cause string) {
	r.t.Helper()
	r.writer.disturb(r.t)
	r.file.awaitObjects(r.t, r.exporter, r.writer.finish(r.t)...)
	for _, sink := range r.topics {
		said := ""
		eventually(r.t, deliveryLimit, sink.name+" says "+cause+", and what to do", func() bool {
			said = r.exporter.sinkStatus(r.t, sink.name).LastError
			return strings.Contains(said, cause) && strings.Contains(said, "start the brokers that are down")
		})
		r.t.Logf("%s says: %s", sink.name, said)
	}
}

// expectUnsaved wants saved positions from least on, before all that the file has after its first events (I1).
func (r *rig) expectUnsaved(begun int, least uint64) {
	r.t.Helper()
	first := map[string]uint64{}
	for _, e := range r.file.all(r.t)[begun:] {
		if _, known := first[e.kind()]; !known {
			first[e.kind()] = e.version()
		}
	}
	if len(first) != len(r.names()) {
		r.t.Errorf("%d resources were changed, want %d", len(first), len(r.names()))
	}
	for resource, version := range first {
		if saved := parseVersion(r.exporter.status(r.t, resource).ResourceVersion); saved < least || saved >= version {
			r.t.Errorf("%s: the saved position is %d, and version %d is not in all sinks", resource, saved, version)
		}
	}
}
