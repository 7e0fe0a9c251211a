package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// TestI3I4TablesInKafkaDoNotRot: a state that a topic refuses takes neither the object's last state out of a table nor
// its delete away, and is not passed over because a newer one is in another topic.
func TestI3I4TablesInKafkaDoNotRot(t *testing.T) {
	t.Parallel()
	c := kafka.Start(t, kafka.Options{})
	table := kafkaSink{name: "table", prefix: "table.dev.", delivery: "idempotent",
		more: ", compression: none, partitions: 2, cleanup: compact, topicConfig: " + compactedQuickly(map[string]string{"max.message.bytes": "20000"})}
	r := newKafkaRig(t, c, table)
	lake := followPrefix(c, lakeName, lakePrefix)
	r.exporter.configure(t, r.sinkConfig(c, []kafkaSink{table})+
		fmt.Sprintf("- {name: %s, kafka: {brokers: [%s], topic: %q, compression: none, partitions: 1}}\n", lakeName, strings.Join(c.Brokers(), ", "), lakePrefix+"{label:team}"))
	r.exporter.start(t)
	r.streaming()
	told := func(sink *follower, op, version string) {
		t.Helper()
		sink.await(t, r.exporter, op+" "+version, func(e *event) bool { return e.Name == "rots" && e.op() == op && e.ResourceVersion == version })
	}
	topic, key := topicOf(table.prefix, "configmaps"), "shop/rots"
	first := r.writeRotting("red", 10)
	told(lake, "added", first)
	told(r.topics[0], "added", first)
	c.AlterTopicConfig(t, lakePrefix+"red", map[string]string{"max.message.bytes": "20000"})

	if err := c.Pause(1); err != nil {
		t.Fatal(err)
	}
	before := r.writeRotting("red", 11) // the sinks wait for it
	told(r.file, "updated", before)
	refused := r.writeRotting("red", 100_000)
	last := r.writeRotting("blue", 12)
	told(r.file, "updated", last)
	if err := c.Resume(1); err != nil {
		t.Fatal(err)
	}
	told(lake, "updated", last)
	told(lake, "gap", refused)
	told(r.topics[0], "gap", refused)
	told(r.topics[0], "updated", last)

	refused = r.writeRotting("blue", 100_000)
	told(r.topics[0], "gap", refused)
	r.idle()
	if e, err := parseEvent(rowOf(c.AwaitCompaction(t, topic), key)); err != nil || e.ResourceVersion != last {
		t.Errorf("of the object the table has %s (%v), want its state of version %s", &e, err, last)
	}
	configMaps := r.client.Resource(core("configmaps")).Namespace("shop")
	if err := configMaps.Delete(t.Context(), "rots", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	lake.await(t, r.exporter, "its delete", func(e *event) bool { return e.Name == "rots" && e.op() == "deleted" })
	r.stopIdle()
	if row := rowOf(c.AwaitCompaction(t, topic), key); row != nil {
		t.Errorf("of the deleted object the table has %s", row)
	}
}

// writeRotting makes or changes the ConfigMap, so that it has the label and so many characters.
func (r *rig) writeRotting(team string, size int) (version string) {
	r.t.Helper()
	configMaps := r.client.Resource(core("configmaps")).Namespace("shop")
	manifest := coreObject("ConfigMap", "rots", map[string]any{"team": team})
	manifest["data"] = map[string]any{"text": strings.Repeat("x", size)}
	made, err := configMaps.Update(r.t.Context(), &unstructured.Unstructured{Object: manifest}, metav1.UpdateOptions{})
	if err != nil {
		made = r.create(core("configmaps"), "shop", manifest)
	}
	return made.GetResourceVersion()
}

// rowOf is the value of the key, nil where it has none.
func rowOf(records []kafka.Record, key string) (value []byte) {
	for _, record := range records {
		if string(record.Key) == key {
			value = record.Value
		}
	}
	return value
}
