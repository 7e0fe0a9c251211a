package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// partitions is how many a topic has.
const partitions = 12

// topic is one that a client fills.
type topic struct {
	name    string
	brokers []string
	client  *kgo.Client
	read    int // by committed
}

// newTopic makes it, and returns when it takes records.
func newTopic(ctx context.Context, brokers []string, name string, options ...kgo.Opt) (*topic, error) {
	c, err := kgo.NewClient(append(options, kgo.SeedBrokers(brokers...))...)
	if err != nil {
		return nil, fmt.Errorf("connect to Kafka: %w", err)
	}
	t := &topic{name: name, brokers: brokers, client: c}
	request := kmsg.NewPtrCreateTopicsRequest()
	request.TimeoutMillis = 10_000
	one := kmsg.NewCreateTopicsRequestTopic()
	one.Topic, one.NumPartitions, one.ReplicationFactor = name, partitions, 1
	request.Topics = append(request.Topics, one)
	response, err := request.RequestWith(ctx, c)
	for i := 0; err == nil && i < len(response.Topics); i++ {
		err = kerr.ErrorForCode(response.Topics[i].ErrorCode)
	}
	if err == nil {
		err = t.awaitLeaders(ctx)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("create topic %s: %w", name, err)
	}
	return t, nil
}

// awaitLeaders waits until each partition has a leader that knows so.
func (t *topic) awaitLeaders(ctx context.Context) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range 100 {
		if _, err := t.count(ctx); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	_, err := t.count(ctx)
	return err
}

// newCommittedTopic is newTopic of one whose committed records can be counted. The ends of the others count the markers
// of transactions, too.
func newCommittedTopic(ctx context.Context, brokers []string, name string) (*topic, error) {
	return newTopic(ctx, brokers, name, kgo.ConsumeTopics(name), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
}

// config makes the exporter write to it, with further keys of the sink.
func (t *topic) config(delivery, codec, keys string) string {
	return fmt.Sprintf("sinks: [{name: kafka, kafka: {brokers: [%q], topic: %q, delivery: %s, compression: %s}%s}]\n",
		strings.Join(t.brokers, `", "`), t.name, delivery, codec, keys)
}

// committed is count of what is in transactions: it reads what is new.
func (t *topic) committed(ctx context.Context) (int, error) {
	soon, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	fetched := t.client.PollFetches(soon)
	if err := fetched.Err0(); err != nil && soon.Err() == nil {
		return 0, fmt.Errorf("read topic %s: %w", t.name, err)
	}
	t.read += fetched.NumRecords()
	return t.read, nil
}

// count is how many records are durable.
func (t *topic) count(ctx context.Context) (int, error) {
	request := kmsg.NewPtrListOffsetsRequest()
	request.ReplicaID = -1
	wanted := kmsg.NewListOffsetsRequestTopic()
	wanted.Topic = t.name
	for i := range partitions {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = int32(i), -1 // its end
		wanted.Partitions = append(wanted.Partitions, p)
	}
	request.Topics = append(request.Topics, wanted)
	response, err := request.RequestWith(ctx, t.client)
	if err != nil {
		return 0, fmt.Errorf("ask Kafka for the end of topic %s: %w", t.name, err)
	}
	total := 0
	for _, found := range response.Topics {
		for _, p := range found.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return 0, fmt.Errorf("ask Kafka for the end of topic %s: %w", t.name, err)
			}
			total += int(p.Offset)
		}
	}
	return total, nil
}

// remove deletes it, so that its pages do not fill the memory.
func (t *topic) remove(ctx context.Context) error {
	defer t.client.Close()
	request := kmsg.NewPtrDeleteTopicsRequest()
	request.TimeoutMillis, request.TopicNames = 10_000, []string{t.name}
	one := kmsg.NewDeleteTopicsRequestTopic()
	one.Topic = &t.name
	request.Topics = append(request.Topics, one)
	response, err := request.RequestWith(ctx, t.client)
	for i := 0; err == nil && i < len(response.Topics); i++ {
		err = kerr.ErrorForCode(response.Topics[i].ErrorCode)
	}
	if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return fmt.Errorf("delete topic %s: %w", t.name, err)
	}
	return nil
}
