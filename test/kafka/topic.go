package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
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

// awaitEverywhere asks every broker until none has an error.
func (c *Cluster) awaitEverywhere(tb testing.TB, what string, ask func(context.Context, kmsg.Requestor) error) {
	tb.Helper()
	c.await(tb, what, func(ctx context.Context) error {
		return c.everyBroker(ctx, func(broker kmsg.Requestor) error { return ask(ctx, broker) })
	})
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
	config, replication := map[string]*string{}, int16(cmp.Or(topic.Replication, -1))
	for key, value := range topic.Config {
		config[key] = &value
	}
	c.await(tb, "create topic "+name, func(ctx context.Context) error {
		made, err := c.admin.CreateTopic(ctx, int32(max(topic.Partitions, 1)), replication, config, name)
		return unlessDone(kerr.TopicAlreadyExists, err, made.ErrMessage)
	})
	c.awaitEverywhere(tb, "wait for topic "+name, func(ctx context.Context, broker kmsg.Requestor) error {
		_, err := describe(ctx, broker, name)
		return err
	})
}

// unlessDone is the error of an answer, nil if it says that the change was made before. Even the first answer may say
// so: a broker that waits for a slow controller asks it again by itself. And answers such as REQUEST_TIMED_OUT leave
// open whether the change was made.
func unlessDone(done, err error, message string) error {
	if errors.Is(err, done) {
		return nil
	}
	return permanentUnlessRetriable(err, message)
}

// permanentUnlessRetriable adds what the broker said of its error, and tells until not to repeat what cannot help.
func permanentUnlessRetriable(err error, message string) error {
	var answer *kerr.Error
	if !errors.As(err, &answer) {
		return err // of the connection
	}
	if message != "" {
		err = fmt.Errorf("%w: %s", err, message)
	}
	if !answer.Retriable {
		return permanent{err}
	}
	return err
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
	c.await(tb, "delete topic "+name, func(ctx context.Context) error {
		gone, err := c.admin.DeleteTopic(ctx, name)
		return unlessDone(kerr.UnknownTopicOrPartition, err, gone.ErrMessage)
	})
	c.awaitEverywhere(tb, "wait for the end of topic "+name, func(ctx context.Context, broker kmsg.Requestor) error {
		switch _, err := lookUp(ctx, broker, name); err {
		case kerr.UnknownTopicOrPartition:
			return nil
		case nil:
			return errors.New("it has the topic still")
		default:
			return err
		}
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
	var changes []kadm.AlterConfig
	for key, value := range config {
		change := kadm.AlterConfig{Name: key, Value: &value}
		if value == "" {
			change.Op, change.Value = kadm.DeleteConfig, nil
		}
		changes = append(changes, change)
	}
	err := until(ctx, func(ctx context.Context) error {
		altered, err := c.admin.AlterTopicConfigs(ctx, changes, topic)
		for _, r := range altered {
			err = cmp.Or(err, permanentUnlessRetriable(r.Err, r.ErrMessage))
		}
		return err
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
	offsets := kadm.Offsets{}
	offsets.AddOffset(topic, int32(partition), before, -1)
	c.await(tb, "delete records of "+topic, func(ctx context.Context) error {
		deleted, err := c.admin.DeleteRecords(ctx, offsets)
		return permanentUnlessRetriable(cmp.Or(err, deleted.Error()), "")
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
	names := map[string]bool{}
	c.await(tb, "read the settings", func(ctx context.Context) error {
		ofTopic, err := c.admin.DescribeTopicConfigs(ctx, topic)
		ofBroker, err2 := c.admin.DescribeBrokerConfigs(ctx, 1)
		for _, r := range append(ofTopic, ofBroker...) {
			err = cmp.Or(err, permanentUnlessRetriable(r.Err, r.ErrMessage))
			for _, entry := range r.Configs {
				names[entry.Key] = true
			}
		}
		return cmp.Or(err, err2)
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
		if err := permanentUnlessRetriable(kerr.ErrorForCode(r.ErrorCode), ""); err != nil {
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
	c.await(tb, "add partitions to topic "+name, func(ctx context.Context) error {
		if known, err := describe(ctx, c.client, name); err != nil || len(known.Partitions) >= count {
			return err
		}
		added, err := c.admin.UpdatePartitions(ctx, count, name)
		// The refusal of a number that the topic has; the wait below finds any other.
		return unlessDone(kerr.InvalidPartitions, cmp.Or(err, added.Error()), added[name].ErrMessage)
	})
	c.awaitEverywhere(tb, "wait for the partitions of topic "+name, func(ctx context.Context, broker kmsg.Requestor) error {
		known, err := describe(ctx, broker, name)
		if err == nil && len(known.Partitions) != count {
			err = fmt.Errorf("it knows %d", len(known.Partitions))
		}
		return err
	})
}

// Topics returns the names of all topics but Kafka's own, sorted.
func (c *Cluster) Topics(ctx context.Context) (names []string, err error) {
	err = until(ctx, func(ctx context.Context) error {
		topics, err := c.admin.ListTopics(ctx)
		names = topics.Names()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the topics: %w", err)
	}
	return names, nil
}
