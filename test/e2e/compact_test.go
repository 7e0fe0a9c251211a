package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// kafkaCompacts: what compaction leaves of the topics is what a list of the cluster has, and an exporter goes on after
// it.
func kafkaCompacts(t *testing.T, c *kafka.Cluster) {
	table := kafkaSink{name: "table", prefix: "table.dev.", delivery: "idempotent",
		more: ", partitions: 2, cleanup: compact, topicConfig: " + compactedQuickly(nil)}
	r := newKafkaRig(t, c, table)
	r.writer.populate(t)
	r.exporter.start(t)
	r.writer.change(t, 20)
	r.await(r.writer.finish(t)...)
	r.stopIdle()
	for _, resource := range r.resources() {
		r.compareTable(resource, c.AwaitCompaction(t, topicOf(table.prefix, kubectlName(resource))))
	}
	r.topics = nil // it would find tombstones without their deletes
	r.writer.disturb(t)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	r.stopIdle()
	for _, resource := range r.resources() {
		topic := topicOf(table.prefix, kubectlName(resource))
		r.compareTable(resource, c.ConsumeFast(t, topic, kafka.JudgeOptions{ReadCommitted: true}))
	}
}

// compactedQuickly are settings of topics, these among them, in YAML.
func compactedQuickly(more map[string]string) string {
	settings := kafka.CompactedQuickly()
	delete(settings, "cleanup.policy") // has a key of its own
	maps.Copy(settings, more)
	var text []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		text = append(text, fmt.Sprintf("%s: %q", name, settings[name]))
	}
	return "{" + strings.Join(text, ", ") + "}"
}

// compareTable compares the last record of each key with the list of the resource. Frames of snapshots have keys that
// begin with a slash, and what makes compaction go on, with a zero byte.
func (r *rig) compareTable(resource schema.GroupVersionResource, records []kafka.Record) {
	r.t.Helper()
	rows := map[string]kafka.Record{}
	for _, record := range records {
		if key := string(record.Key); record.Value == nil {
			delete(rows, key)
		} else if !strings.ContainsAny(key[:1], "/\x00") {
			rows[key] = record
		}
	}
	r.eachListed(resource, func(object *unstructured.Unstructured) {
		key := joined(object.GetNamespace(), object.GetName())
		e, err := parseEvent(rows[key].Value)
		if err != nil || e.UID != string(object.GetUID()) || e.ResourceVersion != object.GetResourceVersion() {
			r.t.Errorf("%s %s is uid=%s at version %s, the topic has %s (%v)", resource.Resource, key, object.GetUID(), object.GetResourceVersion(), &e, err)
		}
		delete(rows, key)
	})
	for key := range rows {
		r.t.Errorf("the topic of %s has %s, which does not exist", resource.Resource, key)
	}
}

// allKindsOfSinks while the exporter, the NATS server and the API server are killed.
func allKindsOfSinks(t *testing.T, c *kafka.Cluster) {
	lake := kafkaSink{name: "lake", prefix: "all.dev.", delivery: "idempotent", more: threeReplicas}
	r := newKafkaRig(t, c, lake)
	r.addStream(r.sinkConfig(c, []kafkaSink{lake}))
	r.writer.populate(t)
	r.writer.start(t)
	r.killAtRandom(kills(t, 3))
	r.file.awaitMore(t, r.exporter, len(r.file.all(t))+100)
	r.restartAPIServer()
	r.broker.kill()
	r.broker.start()
	r.file.awaitMore(t, r.exporter, len(r.file.all(t))+100)
	r.exporter.process.Kill()
	r.exporter.start(t)
	r.writer.stop(t)
	r.streaming()
	r.stopIdle()
	r.judge(true)
}
