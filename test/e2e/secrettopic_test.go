package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// secretTopics are sinks of a Kafka cluster: all formats, both deliveries, one of the codecs.
const secretTopics = `
  - {name: k1, kafka: {brokers: [%[1]s], topic: "k1.{resource}", compression: none}, queue: {records: 4, full: spool}}
  - {name: k2, kafka: {brokers: [%[1]s], topic: "k2.{resource}", compression: none, delivery: transactional}, format: cloudevents-binary, queue: {records: 4, full: spool}}
  - {name: k3, kafka: {brokers: [%[1]s], topic: "k3.{resource}", compression: none}, format: debezium, queue: {records: 4, full: spool}}
  - {name: k4, kafka: {brokers: [%[1]s], topic: "k4.{resource}", compression: zstd}, format: object, queue: {records: 4, full: spool}}
`

// TestI9NoValueOfASecretLeavesToKafka, in its records, their keys and headers, nor in the dead letters of what it
// refused.
func TestI9NoValueOfASecretLeavesToKafka(t *testing.T) {
	kafka.RequireReal(t)
	t.Parallel()
	c := kafka.Start(t, kafka.Options{})
	r := newKafkaRig(t, c)
	p := &plant{t: t, r: r}
	p.outlet = outlet{
		config: fmt.Sprintf(secretTopics, strings.Join(c.Brokers(), ", ")),
		logs:   map[string]string{"k1": "k1", "k2": "k2", "k3": "k3", "k4": "k4"},
		narrow: func(limit int) { p.narrowTopics(c, limit) },
		kill:   func() { p.killBrokers(c) },
		start: func() {
			if err := c.StartNodes(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		search: func(log string) { p.searchTopics(c, log) },
	}
	p.noValueLeaves()
}

// narrowTopics is of the topics that get Secrets.
func (p *plant) narrowTopics(c *kafka.Cluster, limit int) {
	p.t.Helper()
	text := fmt.Sprint(limit)
	if limit < 0 {
		text = ""
	}
	for _, log := range p.outlet.logs {
		c.AlterTopicConfig(p.t, log+".secrets", map[string]string{"max.message.bytes": text})
	}
}

func (p *plant) killBrokers(c *kafka.Cluster) {
	p.t.Helper()
	for _, id := range c.NodeIDs() {
		if err := c.Kill(id); err != nil {
			p.t.Fatal(err)
		}
	}
}

// searchTopics reads with a client that is not the exporter's, also what a transaction has not committed.
func (p *plant) searchTopics(c *kafka.Cluster, log string) {
	p.t.Helper()
	for _, resource := range []string{"secrets", "configmaps"} {
		topic, hashes := topicOf(log+".", resource), 0
		for _, r := range c.ConsumeFast(p.t, topic, kafka.JudgeOptions{}) {
			text := fmt.Appendf(nil, "%s %s", r.Key, r.Value)
			for _, h := range r.Headers {
				text = fmt.Appendf(text, " %s %s", h.Key, h.Value)
			}
			p.search(fmt.Sprintf("topic %s, offset %d of partition %d", topic, r.Offset, r.Partition), text)
			hashes += strings.Count(string(text), "hmac-sha256:")
		}
		if hashes == 0 {
			p.t.Errorf("topic %s has no hash: nothing was redacted, or nothing was written", topic)
		}
	}
}
