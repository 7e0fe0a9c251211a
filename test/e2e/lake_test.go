package e2e

import (
	"context"
	"strings"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// A sink in Kafka whose topics a label chooses.
const (
	lakeName   = "lake"
	lakePrefix = "lake."
)

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
