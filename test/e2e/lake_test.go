package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// The tenant's sink in Kafka, whose topics a label chooses.
const (
	lakeName   = "lake"
	lakePrefix = "lake."
)

// addLake starts a broker, where Kafka is there, and gives the exporter a third sink. It returns nil where it is not.
func (r *rig) addLake(t *testing.T) *kafka.Cluster {
	t.Helper()
	if kafka.Available(t.Context()) != nil && !kafka.Required() {
		return nil
	}
	c := kafka.Start(t, kafka.Options{})
	r.topics = append(r.topics, followPrefix(c, lakeName, lakePrefix))
	r.exporter.configure(t, fmt.Sprintf(
		"- {name: nats, nats: {url: %q, stream: %s}}\n- {name: file, file: {path: %q}}\n- {name: %s, kafka: {brokers: [%s], topic: %q, labelTopics: %d}}\n",
		"nats://"+r.broker.address(), streamName, r.path(), lakeName, strings.Join(c.Brokers(), ", "), lakePrefix+"{label:team}", lakeTopics))
	return c
}

// lakeTopics is how many topics labels may make.
const lakeTopics = 100

// followPrefix reads all topics that begin with the prefix, whichever there are.
func followPrefix(c *kafka.Cluster, name, prefix string) *follower {
	logs := map[string]*topicLog{}
	return &follower{
		name: name,
		more: func(ctx context.Context, have int) ([]event, error) {
			topics, err := c.Topics(ctx)
			if err != nil {
				return nil, err
			}
			var events []event
			for _, topic := range topics {
				if !strings.HasPrefix(topic, prefix) {
					continue
				}
				if logs[topic] == nil {
					logs[topic] = &topicLog{prefix: prefix, tail: c.Tail(topic, kafka.JudgeOptions{}), last: map[int]*event{}}
				}
				found, err := logs[topic].read(ctx, have+len(events))
				if err != nil {
					return nil, err
				}
				events = append(events, found...)
			}
			return events, nil
		},
		again: func() *follower { return followPrefix(c, name, prefix) },
	}
}

// judgeLake looks at how many topics labels have made, beside the one of what has no label.
func (a *tenant) judgeLake(c *kafka.Cluster) {
	a.t.Helper()
	topics, err := c.Topics(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	counted := a.r.exporter.metricSum(a.t, "kubecdc_sink_label_topics", lakeName)
	if n := len(topics) - 1; n > lakeTopics || float64(n) != counted {
		a.t.Errorf("labels have made %d topics, %v are counted, and %d are allowed", n, counted, lakeTopics)
	}
	a.t.Logf("labels have made %v topics; %v records were rejected", counted, a.r.exporter.metricSum(a.t, "kubecdc_sink_rejected_total", lakeName))
}
