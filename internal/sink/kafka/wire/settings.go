package wire

import (
	"context"
	"fmt"
	"strconv"

	"github.com/segmentio/kafka-go/protocol/describeconfigs"
)

// Settings are those of a topic's settings that delivery depends on. What the broker does not tell is zero.
type Settings struct {
	MaxMessageBytes   int    // of a whole batch as it is sent, compressed
	MinInsyncReplicas int    // that must have a batch before it is acknowledged
	CleanupPolicy     string // "delete", "compact" or "compact,delete"

	Values map[string]string // all that the broker tells, by Kafka's names
}

// The topic's settings that Settings has a field for.
const (
	maxMessageBytes   = "max.message.bytes"
	minInsyncReplicas = "min.insync.replicas"
	cleanupPolicy     = "cleanup.policy"
)

const resourceTopic int8 = 2

// Settings asks for a topic's settings. It is an *Error with code 29 without DESCRIBE_CONFIGS on the topic, and 3 where
// there is none.
func (c *Cluster) Settings(ctx context.Context, topic string) (Settings, error) {
	answer, err := ask[*describeconfigs.Response](ctx, c.link, anyBroker,
		&describeconfigs.Request{Resources: []describeconfigs.RequestResource{{ResourceType: resourceTopic, ResourceName: topic}}})
	if err != nil {
		return Settings{}, err
	}
	if len(answer.Resources) != 1 {
		return Settings{}, fmt.Errorf("look up the settings of topic %s: the answer has %d topics", topic, len(answer.Resources))
	}
	if code := answer.Resources[0].ErrorCode; code != 0 {
		return Settings{}, &Error{Code: code, Message: answer.Resources[0].ErrorMessage, Request: "look up the settings of topic " + topic,
			Needs: "DESCRIBE_CONFIGS on topic " + topic}
	}
	values := make(map[string]string, len(answer.Resources[0].ConfigEntries))
	for _, entry := range answer.Resources[0].ConfigEntries {
		values[entry.ConfigName] = entry.ConfigValue
	}
	return settingsOf(topic, values)
}

func settingsOf(topic string, values map[string]string) (Settings, error) {
	settings := Settings{CleanupPolicy: values[cleanupPolicy], Values: values}
	for name, number := range map[string]*int{maxMessageBytes: &settings.MaxMessageBytes, minInsyncReplicas: &settings.MinInsyncReplicas} {
		value, given := values[name]
		if !given {
			continue
		}
		var err error
		if *number, err = strconv.Atoi(value); err != nil {
			return Settings{}, fmt.Errorf("look up the settings of topic %s: %s is %q, not a number", topic, name, value)
		}
	}
	return settings, nil
}
