package wire

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/segmentio/kafka-go/protocol/findcoordinator"
	"github.com/segmentio/kafka-go/protocol/metadata"
)

// leaders is what is known of who leads what. Whoever is told by a broker that it is not the one forgets the entry, and
// the next request asks.
type leaders struct {
	asking chan struct{} // holds one token: whoever has it asks, and the others then take what it learned

	mu           sync.Mutex
	topics       map[string]Topic
	coordinators map[string]int32 // by transactional id
}

func (l *leaders) init() {
	l.asking = make(chan struct{}, 1)
	l.clear()
}

func (l *leaders) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.topics = map[string]Topic{}
	l.coordinators = map[string]int32{}
}

// forget drops a topic, unless something newer than what the caller used was learned.
func (l *leaders) forget(topic string, partition, leader int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.topics[topic]; ok && known.leader(partition) == leader {
		delete(l.topics, topic)
	}
}

func (l *leaders) learn(topic Topic) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.topics[topic.Name] = topic
}

func (l *leaders) topic(name string) (Topic, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.topics[name]
	return known, ok
}

// leader is the broker that leads a partition as far as it is known; it asks where it is not.
func (c *Cluster) leader(ctx context.Context, topic string, partition int32) (int32, error) {
	known, err := c.known(ctx, topic)
	if err != nil {
		return 0, err
	}
	if partition < 0 || int(partition) >= len(known.Partitions) {
		return 0, &Error{Code: codeUnknownTopic, Request: fmt.Sprintf("find the leader of topic %s partition %d", topic, partition),
			Message: fmt.Sprintf("the topic has %d partitions", len(known.Partitions))}
	}
	leader := known.leader(partition)
	if leader < 0 {
		c.leaders.forget(topic, partition, leader)
		return 0, &Error{Code: codeLeaderNotAvailable, Request: fmt.Sprintf("find the leader of topic %s partition %d", topic, partition),
			Message: "the partition has no leader"}
	}
	return leader, nil
}

// known is a topic out of memory, or from the brokers; of many callers at once one asks.
func (c *Cluster) known(ctx context.Context, topic string) (Topic, error) {
	if known, ok := c.leaders.topic(topic); ok {
		return known, nil
	}
	select {
	case c.leaders.asking <- struct{}{}:
		defer func() { <-c.leaders.asking }()
	case <-ctx.Done():
		return Topic{}, ctx.Err()
	}
	if known, ok := c.leaders.topic(topic); ok {
		return known, nil
	}
	return c.Topic(ctx, topic)
}

// askTopic asks any broker for a topic.
func (c *Cluster) askTopic(ctx context.Context, name string) (Topic, error) {
	request := "look up topic " + name
	if name == "" { // would be answered by closing the connection
		return Topic{}, &Error{Code: codeInvalidTopic, Request: "look up a topic", Message: "the name is empty"}
	}
	answer, err := ask[*metadata.Response](ctx, c, anyBroker, &metadata.Request{TopicNames: []string{name}})
	if err != nil {
		return Topic{}, err
	}
	if len(answer.Topics) != 1 {
		return Topic{}, fmt.Errorf("%s: the answer has %d topics", request, len(answer.Topics))
	}
	if code := answer.Topics[0].ErrorCode; code != 0 {
		return Topic{}, &Error{Code: code, Request: request, Needs: "DESCRIBE on topic " + name}
	}
	return topicOf(&answer.Topics[0])
}

// Partitions is how many each of the topics has; those that nobody knows, or that the user must not see, are left out.
func (c *Cluster) Partitions(ctx context.Context, names []string) (map[string]int, error) {
	counts := make(map[string]int, len(names))
	if len(names) == 0 {
		return counts, nil
	}
	answer, err := ask[*metadata.Response](ctx, c, anyBroker, &metadata.Request{TopicNames: names})
	if err != nil {
		return nil, err
	}
	for i := range answer.Topics {
		if answer.Topics[i].ErrorCode == 0 {
			counts[answer.Topics[i].Name] = len(answer.Topics[i].Partitions)
		}
	}
	return counts, nil
}

func topicOf(answer *metadata.ResponseTopic) (Topic, error) {
	topic := Topic{Name: answer.Name, Partitions: make([]Partition, len(answer.Partitions))}
	for i := range topic.Partitions {
		topic.Partitions[i].ID = -1
	}
	for _, p := range answer.Partitions {
		if p.PartitionIndex < 0 || int(p.PartitionIndex) >= len(topic.Partitions) {
			return Topic{}, fmt.Errorf("look up topic %s: partition %d of %d", answer.Name, p.PartitionIndex, len(topic.Partitions))
		}
		topic.Partitions[p.PartitionIndex] = Partition{ID: p.PartitionIndex, Leader: p.LeaderID, Replicas: p.ReplicaNodes, ISR: p.IsrNodes}
	}
	if slices.ContainsFunc(topic.Partitions, func(p Partition) bool { return p.ID < 0 }) {
		return Topic{}, fmt.Errorf("look up topic %s: a partition is named twice", answer.Name)
	}
	return topic, nil
}

// coordinator is the broker that keeps the transactions of an id.
func (c *Cluster) coordinator(ctx context.Context, transactionalID string) (int32, error) {
	c.leaders.mu.Lock()
	known, ok := c.leaders.coordinators[transactionalID]
	c.leaders.mu.Unlock()
	if ok {
		return known, nil
	}
	answer, err := ask[*findcoordinator.Response](ctx, c, anyBroker, &findcoordinator.Request{Key: transactionalID, KeyType: 1})
	if err != nil {
		return 0, err
	}
	if answer.ErrorCode != 0 {
		return 0, &Error{Code: answer.ErrorCode, Message: answer.ErrorMessage, Request: "find the coordinator of transactional id " + transactionalID,
			Needs: writeOn(transactionalID)}
	}
	c.leaders.mu.Lock()
	defer c.leaders.mu.Unlock()
	c.leaders.coordinators[transactionalID] = answer.NodeID
	return answer.NodeID, nil
}

func (l *leaders) forgetCoordinator(transactionalID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.coordinators, transactionalID)
}
