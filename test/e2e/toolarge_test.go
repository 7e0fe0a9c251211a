package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// kafkaRefusesLargeObjects has topics in both deliveries that take less than the API server. Everything else goes on
// meanwhile, and what was refused is there when the limit is raised, while the exporter runs.
func kafkaRefusesLargeObjects(t *testing.T, c *kafka.Cluster) {
	const limited = threeReplicas + ", compression: none, topicConfig: {max.message.bytes: '%d'}"
	plain := kafkaSink{name: "idempotent", prefix: "li.dev.", delivery: "idempotent", more: fmt.Sprintf(limited, 1<<20)}
	whole := kafkaSink{name: "transactional", prefix: "lt.dev.", delivery: "transactional", more: fmt.Sprintf(limited, 1<<20)}
	r := newKafkaRig(t, c, plain, whole)
	r.writer.populate(t)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	huge := string(r.huge("huge").GetUID())
	r.writer.disturb(t)
	r.await(append(r.writer.finish(t), huge)...)
	letters := r.letters()
	if len(letters) != 2 || letters[0].Name != "huge" || letters[0].Reason != "too_large" || letters[1].Sink == letters[0].Sink {
		t.Fatalf("letters are %+v", letters)
	}
	for _, s := range []kafkaSink{plain, whole} {
		c.AlterTopicConfig(t, topicOf(s.prefix, "configmaps"), map[string]string{"max.message.bytes": "4194304"})
	}
	if out := r.command("deadletter", "replay"); strings.Count(out, "delivered") != 2 {
		t.Errorf("replay says %s", out)
	}
	r.stopIdle()
	r.awaitTransactions(c, whole)
	for _, sink := range r.topics {
		if got := r.toldTo(sink, huge); got != "gap, added current" {
			t.Errorf("of the large object %s tells %q", sink.name, got)
		}
		if got, want := versions(sink.all(t)), versions(r.file.all(t)); !slices.Equal(got, want) {
			t.Errorf("%s tells of %d changes, the file of %d, or of others", sink.name, len(got), len(want))
		}
	}
	if left := r.letters(); len(left) != 0 {
		t.Errorf("left are %+v", left)
	}
}

// versions is what a sink tells of ConfigMaps, in no order, without saying how.
func versions(events []event) []string {
	all := sequence(events)
	slices.Sort(all)
	return all
}
