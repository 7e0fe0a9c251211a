package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Topic is what a topic is created with. The zero value has one partition, and as
// many replicas as there are brokers.
type Topic struct {
	Partitions  int
	Replication int
	Config      map[string]string
}

// await repeats attempt within a test until it has no error.
func (c *Cluster) await(tb testing.TB, what string, attempt func(context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), callLimit)
	defer cancel()
	if err := until(ctx, attempt); err != nil {
		tb.Fatalf("%s: %v", what, err)
	}
}

// CreateTopic creates a topic and returns when every broker knows it and its leaders. The test fails where there is
// such a topic already, so nobody else may make it meanwhile.
func (c *Cluster) CreateTopic(tb testing.TB, name string, topic Topic) {
	tb.Helper()
	c.await(tb, "create topic "+name, func(ctx context.Context) error {
		switch _, err := lookUp(ctx, c.client, name); err {
		case kerr.UnknownTopicOrPartition:
			return nil
		case nil:
			return permanent{kerr.TopicAlreadyExists}
		default:
			return err
		}
	})
	request := creation(name, topic)
	c.await(tb, "create topic "+name, func(ctx context.Context) error {
		response, err := request.RequestWith(ctx, c.client)
		if err != nil {
			return err
		}
		return unlessDone(kerr.TopicAlreadyExists, response.Topics[0].ErrorCode, response.Topics[0].ErrorMessage)
	})
	c.await(tb, "wait for topic "+name, func(ctx context.Context) error {
		return c.everyBroker(ctx, func(broker kmsg.Requestor) error {
			_, err := describe(ctx, broker, name)
			return err
		})
	})
}

func creation(name string, topic Topic) *kmsg.CreateTopicsRequest {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, int32(max(topic.Partitions, 1)), -1
	if topic.Replication > 0 {
		t.ReplicationFactor = int16(topic.Replication)
	}
	for key, value := range topic.Config {
		config := kmsg.NewCreateTopicsRequestTopicConfig()
		config.Name, config.Value = key, kmsg.StringPtr(value)
		t.Configs = append(t.Configs, config)
	}
	request := kmsg.NewPtrCreateTopicsRequest()
	request.Topics, request.TimeoutMillis = append(request.Topics, t), int32(attemptLimit.Milliseconds())
	return request
}

// unlessDone is the error of an answer, nil if it says that the change was made before. Even the first answer may say
// so: a broker that waits for a slow controller asks it again by itself. And answers such as REQUEST_TIMED_OUT leave
// open whether the change was made.
func unlessDone(done *kerr.Error, code int16, message *string) error {
	err := kerr.ErrorForCode(code)
	if err == done {
		return nil
	}
	return permanentUnlessRetriable(err, message)
}

// permanentUnlessRetriable adds what the broker said of its error, and tells until not to repeat what cannot help.
func permanentUnlessRetriable(err error, message *string) error {
	if err == nil {
		return nil
	}
	said := err
	if message != nil {
		said = fmt.Errorf("%w: %s", err, *message)
	}
	if !kerr.IsRetriable(err) {
		return permanent{said}
	}
	return said
}

// describe returns a topic's metadata, once each partition has a leader.
func describe(ctx context.Context, to kmsg.Requestor, name string) (kmsg.MetadataResponseTopic, error) {
	topic, err := lookUp(ctx, to, name)
	if err != nil {
		return topic, err
	}
	for _, p := range topic.Partitions {
		if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
			return topic, fmt.Errorf("partition %d: %w", p.Partition, err)
		}
	}
	return topic, nil
}

// Replicas returns how many each partition of the topic has.
func (c *Cluster) Replicas(tb testing.TB, topic string) (replicas []int) {
	tb.Helper()
	c.await(tb, "ask for the replicas of "+topic, func(ctx context.Context) error {
		known, err := describe(ctx, c.client, topic)
		if err != nil {
			return err
		}
		replicas = replicas[:0]
		for _, p := range known.Partitions {
			replicas = append(replicas, len(p.Replicas))
		}
		return nil
	})
	return replicas
}

// lookUp returns a topic's metadata; partitions may have no leader.
func lookUp(ctx context.Context, to kmsg.Requestor, name string) (kmsg.MetadataResponseTopic, error) {
	request := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = &name
	request.Topics = append(request.Topics, topic)
	response, err := request.RequestWith(ctx, to)
	if err != nil {
		return kmsg.MetadataResponseTopic{}, err
	}
	if len(response.Topics) != 1 {
		return kmsg.MetadataResponseTopic{}, fmt.Errorf("metadata of %d topics, want one", len(response.Topics))
	}
	return response.Topics[0], kerr.ErrorForCode(response.Topics[0].ErrorCode)
}

// DeleteTopic deletes a topic and returns when no broker knows it any more. It waits for a topic that is not there.
func (c *Cluster) DeleteTopic(tb testing.TB, name string) {
	tb.Helper()
	c.await(tb, "find topic "+name, func(ctx context.Context) error {
		_, err := lookUp(ctx, c.client, name)
		return err
	})
	request := kmsg.NewPtrDeleteTopicsRequest()
	request.TimeoutMillis, request.TopicNames = int32(attemptLimit.Milliseconds()), []string{name}
	t := kmsg.NewDeleteTopicsRequestTopic()
	t.Topic = &name
	request.Topics = append(request.Topics, t)
	c.await(tb, "delete topic "+name, func(ctx context.Context) error {
		response, err := request.RequestWith(ctx, c.client)
		if err != nil {
			return err
		}
		return unlessDone(kerr.UnknownTopicOrPartition, response.Topics[0].ErrorCode, response.Topics[0].ErrorMessage)
	})
	c.await(tb, "wait for the end of topic "+name, func(ctx context.Context) error {
		return c.everyBroker(ctx, func(broker kmsg.Requestor) error {
			_, err := lookUp(ctx, broker, name)
			switch err {
			case kerr.UnknownTopicOrPartition:
				return nil
			case nil:
				return errors.New("it has the topic still")
			}
			return err
		})
	})
}

// AlterTopicConfig sets configuration of a topic, such as max.message.bytes.
// An empty value takes the setting back to the broker's default. It returns when
// every broker has heard of it; to act on it takes them a moment longer, so repeat
// what depends on it.
func (c *Cluster) AlterTopicConfig(tb testing.TB, topic string, config map[string]string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), callLimit)
	defer cancel()
	if err := c.alterTopicConfig(ctx, topic, config); err != nil {
		tb.Fatal(err)
	}
}

func (c *Cluster) alterTopicConfig(ctx context.Context, topic string, config map[string]string) error {
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	for key, value := range config {
		change := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		change.Name, change.Op, change.Value = key, kmsg.IncrementalAlterConfigOpSet, kmsg.StringPtr(value)
		if value == "" {
			change.Op, change.Value = kmsg.IncrementalAlterConfigOpDelete, nil
		}
		resource.Configs = append(resource.Configs, change)
	}
	request.Resources = append(request.Resources, resource)
	err := until(ctx, func(ctx context.Context) error {
		response, err := request.RequestWith(ctx, c.client)
		if err != nil {
			return err
		}
		for _, r := range response.Resources {
			if err := permanentUnlessRetriable(kerr.ErrorForCode(r.ErrorCode), r.ErrorMessage); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("alter configuration of %s: %w", topic, err)
	}
	return c.awaitTopicConfig(ctx, topic, config)
}

// awaitTopicConfig returns when every broker has the configuration.
func (c *Cluster) awaitTopicConfig(ctx context.Context, topic string, config map[string]string) error {
	err := until(ctx, func(ctx context.Context) error {
		return c.everyBroker(ctx, func(broker kmsg.Requestor) error {
			got, err := topicConfig(ctx, broker, topic)
			for key, want := range config {
				if err == nil && want != "" && got[key] != want {
					err = fmt.Errorf("%s is %s, want %s", key, got[key], want)
				}
			}
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("wait for configuration of %s: %w", topic, err)
	}
	return nil
}

// DeleteRecords deletes a partition's records below an offset, as retention does;
// -1 deletes all.
func (c *Cluster) DeleteRecords(tb testing.TB, topic string, partition int, before int64) {
	tb.Helper()
	p := kmsg.NewDeleteRecordsRequestTopicPartition()
	p.Partition, p.Offset = int32(partition), before
	t := kmsg.NewDeleteRecordsRequestTopic()
	t.Topic, t.Partitions = topic, append(t.Partitions, p)
	request := kmsg.NewPtrDeleteRecordsRequest()
	request.Topics, request.TimeoutMillis = append(request.Topics, t), int32(attemptLimit.Milliseconds())
	c.await(tb, "delete records of "+topic, func(ctx context.Context) error {
		response, err := request.RequestWith(ctx, c.client)
		if err != nil {
			return err
		}
		return permanentUnlessRetriable(kerr.ErrorForCode(response.Topics[0].Partitions[0].ErrorCode), nil)
	})
}

// TopicConfig returns what a topic's configuration is, defaults included.
func (c *Cluster) TopicConfig(tb testing.TB, topic string) (config map[string]string) {
	tb.Helper()
	c.await(tb, "read configuration of "+topic, func(ctx context.Context) (err error) {
		config, err = topicConfig(ctx, c.client, topic)
		return err
	})
	return config
}

// Settings are the names of the settings that topics and brokers have.
func (c *Cluster) Settings(tb testing.TB) map[string]bool {
	tb.Helper()
	const topic = "settings"
	c.CreateTopic(tb, topic, Topic{})
	request, names := kmsg.NewPtrDescribeConfigsRequest(), map[string]bool{}
	for kind, name := range map[kmsg.ConfigResourceType]string{kmsg.ConfigResourceTypeTopic: topic, kmsg.ConfigResourceTypeBroker: "1"} {
		resource := kmsg.NewDescribeConfigsRequestResource()
		resource.ResourceType, resource.ResourceName = kind, name
		request.Resources = append(request.Resources, resource)
	}
	c.await(tb, "read the settings", func(ctx context.Context) error {
		response, err := request.RequestWith(ctx, c.client)
		if err != nil {
			return err
		}
		for _, r := range response.Resources {
			if err := permanentUnlessRetriable(kerr.ErrorForCode(r.ErrorCode), r.ErrorMessage); err != nil {
				return err
			}
			for _, entry := range r.Configs {
				names[entry.Name] = true
			}
		}
		return nil
	})
	return names
}

func topicConfig(ctx context.Context, from kmsg.Requestor, topic string) (map[string]string, error) {
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	request := kmsg.NewPtrDescribeConfigsRequest()
	request.Resources = append(request.Resources, resource)
	response, err := request.RequestWith(ctx, from)
	if err != nil {
		return nil, err
	}
	config := map[string]string{}
	for _, r := range response.Resources {
		if err := permanentUnlessRetriable(kerr.ErrorForCode(r.ErrorCode), r.ErrorMessage); err != nil {
			return nil, err
		}
		for _, entry := range r.Configs {
			if entry.Value != nil {
				config[entry.Name] = *entry.Value
			}
		}
	}
	return config, nil
}

// AddPartitions raises the number of a topic's partitions, and returns when every broker knows them and their leaders.
func (c *Cluster) AddPartitions(tb testing.TB, name string, count int) {
	tb.Helper()
	request := kmsg.NewPtrCreatePartitionsRequest()
	t := kmsg.NewCreatePartitionsRequestTopic()
	t.Topic, t.Count = name, int32(count)
	request.Topics, request.TimeoutMillis = append(request.Topics, t), int32(attemptLimit.Milliseconds())
	c.await(tb, "add partitions to topic "+name, func(ctx context.Context) error {
		if known, err := describe(ctx, c.client, name); err != nil || len(known.Partitions) >= count {
			return err
		}
		response, err := request.RequestWith(ctx, c.client)
		if err != nil {
			return err
		}
		// The refusal of a number that the topic has; the wait below finds any other.
		return unlessDone(kerr.InvalidPartitions, response.Topics[0].ErrorCode, response.Topics[0].ErrorMessage)
	})
	c.await(tb, "wait for the partitions of topic "+name, func(ctx context.Context) error {
		return c.everyBroker(ctx, func(broker kmsg.Requestor) error {
			known, err := describe(ctx, broker, name)
			if err == nil && len(known.Partitions) != count {
				err = fmt.Errorf("it knows %d", len(known.Partitions))
			}
			return err
		})
	})
}

// Topics returns the names of all topics but Kafka's own, sorted.
func (c *Cluster) Topics(ctx context.Context) (names []string, err error) {
	err = until(ctx, func(ctx context.Context) error {
		request := kmsg.NewPtrMetadataRequest()
		request.Topics = nil
		response, err := request.RequestWith(ctx, c.client)
		if err != nil {
			return err
		}
		names = names[:0]
		for _, topic := range response.Topics {
			if !topic.IsInternal && topic.Topic != nil {
				names = append(names, *topic.Topic)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the topics: %w", err)
	}
	slices.Sort(names)
	return names, nil
}
