package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// kafkaThrottles: a quota makes the brokers read slowly, everything is changed until both sinks have waited twice, the
// exporter is killed in the middle, and everything is changed again. What the brokers find later of the killed one must
// not come after what its successor wrote: a compacted topic would keep it.
func kafkaThrottles(t *testing.T, c *kafka.Cluster) {
	const clientID = "kubecdc"
	defer c.SetProducerQuota(t, clientID, 0)
	settings := ", cleanup: compact, partitions: 2, replication: 3, minInsyncReplicas: 2"
	plain := kafkaSink{name: "idempotent", prefix: "qi.dev.", delivery: "idempotent", more: settings}
	whole := kafkaSink{name: "transactional", prefix: "qt.dev.", delivery: "transactional", more: settings}
	r := newKafkaRig(t, c, plain, whole)
	many := &objects{t: t, r: r, n: 60}
	many.change("1")
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	c.SetProducerQuota(t, clientID, 2000)
	for range 2 {
		many.changeUntilThrottled(plain.name, whole.name)
	}
	<-time.After(time.Second) // the moment of the kill: something is on its way
	r.exporter.process.Kill()
	many.change("2")
	c.SetProducerQuota(t, clientID, 0)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	r.stopIdle()
	c.AwaitDeadClients(t)
	r.awaitTransactions(c, whole)
	for _, sink := range []kafkaSink{plain, whole} {
		for _, resource := range r.resources() {
			r.compareTable(resource, c.ConsumeFast(t, topicOf(sink.prefix, kubectlName(resource)), kafka.JudgeOptions{ReadCommitted: true}))
		}
	}
}

// objects are ConfigMaps that are all changed at once.
type objects struct {
	t *testing.T
	r *rig
	n int

	round int // of changes under a quota
}

// change makes them, or gives each another value.
func (o *objects) change(value string) {
	o.t.Helper()
	client := o.r.client.Resource(core("configmaps")).Namespace("default")
	for i := range o.n {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprintf("one-of-many-%d", i)},
			"data": map[string]any{"value": value, "rest": uncompressible(fmt.Sprint(value, i))},
		}}
		_, err := client.Apply(o.t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "test", Force: true})
		if err != nil {
			o.t.Fatal(err)
		}
	}
}

// changeUntilThrottled changes them until a quota has made each of the sinks wait. Only who is about to send one more
// request waits, so where nothing is left to send, one of them is changed once more. One is enough, and few bytes: a
// broker reads nothing for as long as all of them take under the quota, not even that who sent them is dead.
func (o *objects) changeUntilThrottled(sinks ...string) {
	o.t.Helper()
	before := o.throttled(sinks)
	o.round++
	o.change(fmt.Sprintf("throttled-%d", o.round))
	one, more := &objects{t: o.t, r: o.r, n: 1}, 0
	eventually(o.t, deliveryLimit, "each sink is throttled", func() bool {
		for i, now := range o.throttled(sinks) {
			if now > before[i] {
				continue
			}
			if o.r.exporter.metric(o.t, fmt.Sprintf(`kubecdc_queue_records{sink=%q}`, sinks[i])) == 0 {
				more++
				one.change(fmt.Sprintf("throttled-%d-%d", o.round, more))
			}
			return false
		}
		return true
	})
	o.t.Logf("round %d: %d more changes of one object", o.round, more)
}

// throttled is how often each of the sinks has waited for a quota.
func (o *objects) throttled(sinks []string) []float64 {
	o.t.Helper()
	counts := make([]float64, len(sinks))
	for i, sink := range sinks {
		counts[i] = o.r.exporter.metric(o.t, fmt.Sprintf(`kubecdc_sink_retries_total{reason="throttled",sink=%q}`, sink))
	}
	return counts
}

// uncompressible is some text that takes half of its length when it is compressed.
func uncompressible(seed string) string {
	var text strings.Builder
	for sum := sha256.Sum256([]byte(seed)); text.Len() < 2000; sum = sha256.Sum256(sum[:]) {
		text.WriteString(hex.EncodeToString(sum[:]))
	}
	return text.String()
}
