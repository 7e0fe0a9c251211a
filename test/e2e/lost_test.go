package e2e

import (
	"context"
	"syscall"
	"testing"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// kafkaLosesData makes brokers lose what they had acknowledged, in both ways that they know.
func kafkaLosesData(t *testing.T, c *kafka.Cluster) {
	frail := kafkaSink{name: "frail", prefix: "frail", delivery: "idempotent", more: ", create: false"}
	whole := kafkaSink{name: "whole", prefix: "whole", delivery: "transactional", more: ", create: false"}
	c.CreateTopic(t, frail.prefix, kafka.Topic{Replication: 2, Config: map[string]string{"min.insync.replicas": "1"}})
	c.CreateTopic(t, whole.prefix, kafka.Topic{})
	r := newKafkaRig(t, c, frail, whole)
	r.world.begunAnew = true
	r.writer.populate(t)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)

	ctx, cancel := context.WithTimeout(t.Context(), scenarioLimit)
	defer cancel()
	err := c.ElectUnclean(ctx, frail.prefix, 0, func() error {
		r.writer.disturb(t)
		r.await(r.writer.finish(t)...) // acknowledged, and read back
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AwaitISR(ctx, frail.prefix); err != nil {
		t.Fatal(err)
	}
	r.topics[0] = r.topics[0].again()
	r.writer.change(t, 5)
	r.await(r.writer.finish(t)...)
	r.awaitMended(r.topics[:1])
	r.awaitTransactions(c, whole)
	r.expectLost(r.judge(true), 1, 0)

	r.writer.start(t)
	for _, topic := range []string{whole.prefix, frail.prefix} {
		r.file.awaitMore(t, r.exporter, len(r.file.all(t))+100)
		r.exporter.signal(t, syscall.SIGSTOP) // a topic that stays away for seconds ends a sink that must not make it
		c.DeleteTopic(t, topic)
		c.CreateTopic(t, topic, kafka.Topic{})
		r.exporter.signal(t, syscall.SIGCONT)
	}
	r.topics[0], r.topics[1] = r.topics[0].again(), r.topics[1].again()
	r.awaitMended(r.topics)
	r.settle()
	r.stopIdle()
	r.awaitTransactions(c, whole)
	r.expectLost(r.judge(true), 1, 1)
}

// awaitMended returns when each of the sinks has a whole snapshot of each resource after what it lost.
func (r *rig) awaitMended(sinks []*follower) {
	r.t.Helper()
	for _, resource := range r.names() {
		for _, sink := range sinks {
			sink.awaitEnd(r.t, r.exporter, resource, "lost")
		}
	}
}

// expectLost wants so many gaps of reason lost in the logs of the sinks in Kafka, and none in the file.
func (r *rig) expectLost(judges []*judge, frail, whole int) {
	r.t.Helper()
	want := map[string]int{"frail": frail, "whole": whole, "file": 0}
	for _, j := range judges {
		for _, resource := range r.names() {
			if n := j.course(resource).count("lost"); n != want[j.sink] {
				r.t.Errorf("sink %s: %s has %d gaps of reason lost, want %d", j.sink, resource, n, want[j.sink])
			}
		}
	}
}
