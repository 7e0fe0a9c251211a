package wire

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/findcoordinator"
	"github.com/segmentio/kafka-go/protocol/metadata"
)

// coordinator is the broker that keeps the transactions of an id.
func (l *leaders) coordinator(ctx context.Context, transactionalID string) (int32, error) {
	l.mu.Lock()
	known, ok := l.coordinators[transactionalID]
	l.mu.Unlock()
	if ok {
		return known, nil
	}
	answer, err := ask[*findcoordinator.Response](ctx, l.link, anyBroker, &findcoordinator.Request{Key: transactionalID, KeyType: 1})
	if err != nil {
		return 0, err
	}
	if answer.ErrorCode != 0 {
		return 0, &Error{Code: answer.ErrorCode, Message: answer.ErrorMessage, Request: "find the coordinator of transactional id " + transactionalID,
			Needs: writeOn(transactionalID)}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.coordinators[transactionalID] = answer.NodeID
	return answer.NodeID, nil
}

func (l *leaders) forgetCoordinator(transactionalID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.coordinators, transactionalID)
}

func writeOn(transactionalID string) string { return "WRITE on transactional id " + transactionalID }

func askCoordinator[Answer protocol.Message](ctx context.Context, l *leaders, transactionalID string, request protocol.Message) (Answer, error) {
	broker, err := l.coordinator(ctx, transactionalID)
	if err != nil {
		var none Answer
		return none, err
	}
	answer, err := ask[Answer](ctx, l.link, broker, request)
	l.doubtCoordinator(transactionalID, err)
	return answer, err
}

// doubtCoordinator forgets who the coordinator is after an error that may come from somebody else being it.
func (l *leaders) doubtCoordinator(transactionalID string, err error) {
	if err == nil {
		return
	}
	switch Code(err) {
	case 0, codeCoordinatorLoading, codeCoordinatorNotAvailable, codeNotCoordinator:
		l.forgetCoordinator(transactionalID)
	}
}

// leaders is what is known of who leads what. Whoever is told by a broker that it is not the one forgets the entry, and
// the next request asks.
type leaders struct {
	*link
	asking chan struct{} // holds one token: whoever has it asks, and the others then take what it learned

	mu           sync.Mutex
	topics       map[string]Topic
	coordinators map[string]int32 // by transactional id
}

func newLeaders(over *link) *leaders {
	l := &leaders{link: over, asking: make(chan struct{}, 1)}
	l.clear()
	over.renewed = l.clear
	return l
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

func (l *leaders) learned(name string) (Topic, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.topics[name]
	return known, ok
}

// leader is the broker that leads a partition as far as it is known; it asks where it is not.
func (l *leaders) leader(ctx context.Context, topic string, partition int32) (int32, error) {
	known, err := l.known(ctx, topic)
	if err != nil {
		return 0, err
	}
	if partition < 0 || int(partition) >= len(known.Partitions) {
		return 0, &Error{Code: codeUnknownTopic, Request: fmt.Sprintf("find the leader of topic %s partition %d", topic, partition),
			Message: fmt.Sprintf("the topic has %d partitions", len(known.Partitions))}
	}
	leader := known.leader(partition)
	if leader < 0 {
		l.forget(topic, partition, leader)
		return 0, &Error{Code: codeLeaderNotAvailable, Request: fmt.Sprintf("find the leader of topic %s partition %d", topic, partition),
			Message: "the partition has no leader"}
	}
	return leader, nil
}

// known is a topic out of memory, or from the brokers; of many callers at once one asks.
func (l *leaders) known(ctx context.Context, topic string) (Topic, error) {
	if known, ok := l.learned(topic); ok {
		return known, nil
	}
	select {
	case l.asking <- struct{}{}:
		defer func() { <-l.asking }()
	case <-ctx.Done():
		return Topic{}, ctx.Err()
	}
	if known, ok := l.learned(topic); ok {
		return known, nil
	}
	return l.Topic(ctx, topic)
}

// askTopic asks any broker for a topic.
func (l *leaders) askTopic(ctx context.Context, name string) (Topic, error) {
	request := "look up topic " + name
	if name == "" { // would be answered by closing the connection
		return Topic{}, &Error{Code: codeInvalidTopic, Request: "look up a topic", Message: "the name is empty"}
	}
	answer, err := ask[*metadata.Response](ctx, l.link, anyBroker, &metadata.Request{TopicNames: []string{name}})
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

// Topic asks the brokers for a topic. It is an *Error with code 3 where there is none, and 29 without DESCRIBE on it.
func (l *leaders) Topic(ctx context.Context, name string) (Topic, error) {
	topic, err := l.askTopic(ctx, name)
	if err == nil {
		l.learn(topic)
	}
	return topic, err
}

// asked is who was asked as the leader of a partition.
type asked struct {
	partition
	leader int32
}

// doubtLeader forgets who leads a partition after an error that may come from somebody else leading it.
func (l *leaders) doubtLeader(who asked, err error) {
	if err == nil {
		return
	}
	switch Code(err) {
	case 0, codeUnknownTopic, codeLeaderNotAvailable, codeNotLeader, codeBrokerNotAvailable, codeReplicaNotAvailable,
		codeStorageError, codeListenerNotFound, codeFencedLeaderEpoch, codeUnknownLeaderEpoch:
		l.forget(who.topic, who.number, who.leader)
	}
}

// Topic is what the brokers know of a topic.
type Topic struct {
	Name       string
	Partitions []Partition // by ID, which begins at 0 and has no holes
}

// Partition is one log of a topic.
type Partition struct {
	ID       int32
	Leader   int32 // broker id; -1 while there is none
	Replicas []int32
}

// partition names one log.
type partition struct {
	topic  string
	number int32
}

func (t *Topic) leader(partition int32) int32 {
	if partition < 0 || int(partition) >= len(t.Partitions) {
		return -1
	}
	return t.Partitions[partition].Leader
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
		topic.Partitions[p.PartitionIndex] = Partition{ID: p.PartitionIndex, Leader: p.LeaderID, Replicas: p.ReplicaNodes}
	}
	if slices.ContainsFunc(topic.Partitions, func(p Partition) bool { return p.ID < 0 }) {
		return Topic{}, fmt.Errorf("look up topic %s: a partition is named twice", answer.Name)
	}
	return topic, nil
}
