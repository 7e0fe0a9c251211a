package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TopicSpec is a topic to be created.
type TopicSpec struct {
	Name        string
	Partitions  int32             // -1 or 0 is the broker's num.partitions
	Replication int16             // -1 or 0 is the broker's default.replication.factor
	Configs     map[string]string // such as cleanup.policy
}

// Create makes a topic and waits until its partitions have leaders, 10 s at most. It returns nil where the topic is
// there already, whatever its settings are.
func (c *Cluster) Create(ctx context.Context, spec TopicSpec) error {
	err := c.create(ctx, spec, false)
	switch {
	case err == nil:
		return c.awaitTopic(ctx, spec.Name)
	case Code(err) == kerr.TopicAlreadyExists.Code:
		return nil
	}
	return err
}

// Validate asks the brokers whether they would make the topic, and makes none (KIP-4, validate_only).
func (c *Cluster) Validate(ctx context.Context, spec TopicSpec) error {
	return c.create(ctx, spec, true)
}

// create asks the broker that the brokers name as the controller. Those of KRaft name any, and it hands the request on.
func (c *Cluster) create(ctx context.Context, spec TopicSpec, validateOnly bool) error {
	request, answer := kmsg.NewPtrCreateTopicsRequest(), kmsg.NewPtrCreateTopicsResponse()
	request.TimeoutMillis, request.ValidateOnly = int32((c.options.Timeout / 2).Milliseconds()), validateOnly
	topic := kmsg.CreateTopicsRequestTopic{Topic: spec.Name, NumPartitions: cmp.Or(spec.Partitions, -1), ReplicationFactor: cmp.Or(spec.Replication, -1)}
	for _, name := range slices.Sorted(maps.Keys(spec.Configs)) {
		topic.Configs = append(topic.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: name, Value: kmsg.StringPtr(spec.Configs[name])})
	}
	request.Topics = append(request.Topics, topic)
	brokers, err := c.metadata(ctx, []string{})
	if err == nil {
		err = c.ask(ctx, brokers.ControllerID, request, answer)
	}
	if err != nil {
		return err
	}
	if len(answer.Topics) != 1 {
		return fmt.Errorf("create topic %s: the answer has %d topics", spec.Name, len(answer.Topics))
	}
	made := answer.Topics[0]
	return (&Error{Code: made.ErrorCode, Message: textOf(made.ErrorMessage), Request: "create topic " + spec.Name,
		Needs: fmt.Sprintf("CREATE on topic %s or on the cluster", spec.Name)}).orNil()
}

// awaitTopic waits until a broker knows leaders for all of a topic. The other brokers may need some moments more, in
// which they answer with code 3.
func (c *Cluster) awaitTopic(ctx context.Context, name string) error {
	pause := backoff.NewExponentialBackOff(backoff.WithInitialInterval(20*time.Millisecond), backoff.WithMaxInterval(500*time.Millisecond),
		backoff.WithMaxElapsedTime(10*time.Second))
	return backoff.Retry(func() error {
		topic, err := c.Topic(ctx, name)
		if err == nil && slices.ContainsFunc(topic.Partitions, func(p Partition) bool { return p.Leader < 0 }) {
			err = &Error{Code: kerr.LeaderNotAvailable.Code, Request: "create topic " + name, Message: "not all partitions have a leader yet"}
		}
		if err != nil && (Classify(err) != Retriable || errors.Is(err, errClosed)) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(pause, ctx))
}

// Settings are those of a topic's settings that delivery depends on. What the broker does not tell is zero.
type Settings struct {
	MaxMessageBytes   int               // of a whole batch as it is sent, compressed
	MinInsyncReplicas int               // that must have a batch before it is acknowledged
	Values            map[string]string // all that the broker tells, by Kafka's names
}

// Settings asks for a topic's settings. It is an *Error with code 29 without DESCRIBE_CONFIGS on the topic, and 3 where
// there is none.
func (c *Cluster) Settings(ctx context.Context, topic string) (Settings, error) {
	request := "look up the settings of topic " + topic
	question, answer := kmsg.NewPtrDescribeConfigsRequest(), kmsg.NewPtrDescribeConfigsResponse()
	question.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: topic}}
	err := c.ask(ctx, anyBroker, question, answer)
	if err != nil {
		return Settings{}, err
	}
	if len(answer.Resources) != 1 {
		return Settings{}, fmt.Errorf("%s: the answer has %d topics", request, len(answer.Resources))
	}
	found := answer.Resources[0]
	if found.ErrorCode != 0 {
		return Settings{}, &Error{Code: found.ErrorCode, Message: textOf(found.ErrorMessage), Request: request, Needs: "DESCRIBE_CONFIGS on topic " + topic}
	}
	settings := Settings{Values: make(map[string]string, len(found.Configs))}
	numbers := map[string]*int{"max.message.bytes": &settings.MaxMessageBytes, "min.insync.replicas": &settings.MinInsyncReplicas}
	for _, entry := range found.Configs {
		value := textOf(entry.Value)
		settings.Values[entry.Name] = value
		if number := numbers[entry.Name]; number != nil {
			if *number, err = strconv.Atoi(value); err != nil {
				return Settings{}, fmt.Errorf("%s: %s is %q, not a number", request, entry.Name, value)
			}
		}
	}
	return settings, nil
}
