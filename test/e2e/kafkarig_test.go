package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// kafkaSink is a sink of the exporter in Kafka.
type kafkaSink struct {
	name     string
	prefix   string // of topics, with a dot at its end; without one it is the only topic
	delivery string
	more     string // further settings, ", key: value"
}

// threeReplicas lose nothing that was acknowledged while one broker is away.
const threeReplicas = ", partitions: 3, replication: 3, minInsyncReplicas: 2"

// newKafkaRig starts everything but the exporter, which writes to a file and to the sinks in the cluster.
func newKafkaRig(t *testing.T, c *kafka.Cluster, sinks ...kafkaSink) *rig {
	t.Helper()
	r := newWorld(t, world{})
	for _, s := range sinks {
		r.topics = append(r.topics, followTopics(c, s, r.names()))
	}
	r.exporter = r.newExporter("state")
	r.exporter.configure(t, r.sinkConfig(c, sinks))
	return r
}

// addStream gives the exporter JetStream, too, beside what is configured.
func (r *rig) addStream(config string) {
	r.t.Helper()
	r.broker = newBroker(r.t, r.dir)
	r.stream = followStream(r.broker)
	r.exporter.configure(r.t, config+fmt.Sprintf("- {name: nats, nats: {url: %q, stream: %s}}\n", "nats://"+r.broker.address(), streamName))
}

// sinkConfig is the file and the sinks in the cluster.
func (r *rig) sinkConfig(c *kafka.Cluster, sinks []kafkaSink) string {
	text := fmt.Sprintf("- {name: file, file: {path: %q}}\n", r.path())
	for _, s := range sinks {
		text += s.config(c)
	}
	return text
}

// config is the sink's entry in the configuration.
func (s *kafkaSink) config(c *kafka.Cluster) string {
	topic, isLog := topicOf(s.prefix, "{resource}"), !strings.Contains(s.more, "compact")
	return fmt.Sprintf("- {name: %s, kafka: {brokers: [%s], topic: %q, delivery: %s%s}, resolved: {every: 1s, digest: %t}}\n",
		s.name, strings.Join(c.Brokers(), ", "), topic, s.delivery, s.more, isLog)
}

// topics are those of the sink for the resources.
func (s *kafkaSink) topics(resources []string) []string {
	var all []string
	for _, resource := range resources {
		if topic := topicOf(s.prefix, resource); !slices.Contains(all, topic) {
			all = append(all, topic)
		}
	}
	return all
}

// stopIdle stops the exporter when nothing waits for a sink: brokers of a busy machine may take longer for the rest of
// other partitions than a stop waits.
func (r *rig) stopIdle() {
	r.t.Helper()
	r.idle()
	r.exporter.stop(r.t)
}

// idle returns when nothing waits for a sink.
func (r *rig) idle() {
	r.t.Helper()
	eventually(r.t, deliveryLimit, "the sinks have everything", func() bool {
		for _, sink := range r.exporter.statuses(r.t).Sinks {
			if sink.OldestUnackedSeconds > 0 {
				return false
			}
		}
		return true
	})
}

// awaitTransactions returns when readers of committed records see all that was committed.
func (r *rig) awaitTransactions(c *kafka.Cluster, s kafkaSink) {
	r.t.Helper()
	for _, topic := range s.topics(r.names()) {
		c.AwaitTransactions(r.t, topic)
	}
}
