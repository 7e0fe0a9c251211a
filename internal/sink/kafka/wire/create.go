package wire

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/segmentio/kafka-go/protocol/createtopics"
	"github.com/segmentio/kafka-go/protocol/metadata"
)

// createWait is how long Create waits for a topic that was made to be known.
const createWait = 10 * time.Second

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
	case Code(err) == codeTopicExists:
		return nil
	}
	return err
}

// Validate asks the brokers whether they would make the topic, and makes none (KIP-4, validate_only).
func (c *Cluster) Validate(ctx context.Context, spec TopicSpec) error {
	return c.create(ctx, spec, true)
}

func (c *Cluster) create(ctx context.Context, spec TopicSpec, validateOnly bool) error {
	request := spec.request(c.options.Timeout)
	request.ValidateOnly = validateOnly
	answer, err := c.askController(ctx, request)
	if err != nil {
		return err
	}
	if len(answer.Topics) != 1 {
		return fmt.Errorf("create topic %s: the answer has %d topics", spec.Name, len(answer.Topics))
	}
	made := answer.Topics[0]
	if made.ErrorCode == 0 {
		return nil
	}
	return &Error{Code: made.ErrorCode, Message: made.ErrorMessage, Request: "create topic " + spec.Name,
		Needs: fmt.Sprintf("CREATE on topic %s or on the cluster", spec.Name)}
}

func (s *TopicSpec) request(timeout time.Duration) *createtopics.Request {
	topic := createtopics.RequestTopic{Name: s.Name, NumPartitions: s.Partitions, ReplicationFactor: s.Replication}
	if topic.NumPartitions == 0 {
		topic.NumPartitions = -1
	}
	if topic.ReplicationFactor == 0 {
		topic.ReplicationFactor = -1
	}
	for _, name := range slices.Sorted(maps.Keys(s.Configs)) {
		topic.Configs = append(topic.Configs, createtopics.RequestConfig{Name: name, Value: s.Configs[name]})
	}
	return &createtopics.Request{Topics: []createtopics.RequestTopic{topic}, TimeoutMs: int32((timeout / 2).Milliseconds())}
}

// askController sends a request to the broker that the brokers name as the controller. Those of KRaft name any, and it
// hands the request on.
func (c *Cluster) askController(ctx context.Context, request *createtopics.Request) (*createtopics.Response, error) {
	brokers, err := ask[*metadata.Response](ctx, c.link, anyBroker, &metadata.Request{TopicNames: []string{}})
	if err != nil {
		return nil, err
	}
	return ask[*createtopics.Response](ctx, c.link, brokers.ControllerID, request)
}

// awaitTopic waits until a broker knows leaders for all of a topic. The other brokers may need some moments more, in
// which they answer with code 3.
func (c *Cluster) awaitTopic(ctx context.Context, name string) error {
	pause := backoff.NewExponentialBackOff(backoff.WithInitialInterval(20*time.Millisecond), backoff.WithMaxInterval(500*time.Millisecond),
		backoff.WithMaxElapsedTime(createWait))
	return backoff.Retry(func() error {
		topic, err := c.Topic(ctx, name)
		if err == nil && slices.ContainsFunc(topic.Partitions, func(p Partition) bool { return p.Leader < 0 }) {
			err = &Error{Code: codeLeaderNotAvailable, Request: "create topic " + name, Message: "not all partitions have a leader yet"}
		}
		if err != nil && (Classify(err) != Retriable || errors.Is(err, errClosed)) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(pause, ctx))
}
