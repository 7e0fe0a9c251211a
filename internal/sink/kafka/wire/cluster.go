package wire

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/singleflight"
)

// Cluster is the way to the brokers of one cluster. Its methods can be called from many goroutines at once. Every
// method that takes a context sends its request once, and returns within Options.Timeout if not said otherwise, but for
// the time that a broker asks to wait before (KIP-219).
//
// It knows who leads what. Whoever is told by a broker that it is not the one forgets the entry, and the next request
// asks.
type Cluster struct {
	*link
	asking singleflight.Group // of many who ask for a topic at once one does

	mu           sync.Mutex
	topics       map[string]Topic
	coordinators map[string]int32 // by transactional id; of "" every broker is the coordinator
}

// New returns a Cluster that has not connected yet. Its error names the options that are wrong.
func New(options Options) (*Cluster, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	return &Cluster{link: newLink(options), topics: map[string]Topic{}, coordinators: map[string]int32{}}, nil
}

// needsOf is the permission that all requests about a transactional id depend on.
func needsOf(id string) string { return "WRITE on transactional id " + id }

// coordinator is the broker that keeps what is known of the transactional id.
func (c *Cluster) coordinator(ctx context.Context, id string) (int32, error) {
	c.mu.Lock()
	known, ok := c.coordinators[id]
	c.mu.Unlock()
	switch {
	case ok:
		return known, nil
	case id == "":
		return anyBroker, nil
	}
	request, answer := kmsg.NewPtrFindCoordinatorRequest(), kmsg.NewPtrFindCoordinatorResponse()
	request.CoordinatorKey, request.CoordinatorType = id, 1 // of transactions
	if err := c.ask(ctx, anyBroker, request, answer); err != nil {
		return 0, err
	}
	if answer.ErrorCode != 0 {
		return 0, &Error{Code: answer.ErrorCode, Message: textOf(answer.ErrorMessage), Request: "find the coordinator of transactional id " + id, Needs: needsOf(id)}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.coordinators[id] = answer.NodeID
	return answer.NodeID, nil
}

// askCoordinator asks the id's coordinator, and has check look for an error in the answer. After one that may come from
// somebody else being it, it forgets who that is.
func askCoordinator[Answer kmsg.Response](ctx context.Context, c *Cluster, id string, request kmsg.Request, check func(Answer) error) error {
	broker, err := c.coordinator(ctx, id)
	if err == nil {
		answer, _ := request.ResponseKind().(Answer)
		if err = c.ask(ctx, broker, request, answer); err == nil {
			err = check(answer)
		}
	}
	if err != nil && Classify(err) == Retriable {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.coordinators, id)
	}
	return err
}

// leader is the broker that leads a partition as far as it is known; it asks where it is not.
func (c *Cluster) leader(ctx context.Context, topic string, partition int32) (int32, error) {
	c.mu.Lock()
	known, ok := c.topics[topic]
	c.mu.Unlock()
	if !ok {
		found, err, _ := c.asking.Do(topic, func() (any, error) { return c.Topic(ctx, topic) })
		if errors.Is(err, context.Canceled) && ctx.Err() == nil { // who asked for all has gone
			return c.leader(ctx, topic, partition)
		}
		if err != nil {
			return 0, err
		}
		known, _ = found.(Topic)
	}
	isThere := partition >= 0 && int(partition) < len(known.Partitions)
	if isThere && known.Partitions[partition].Leader >= 0 {
		return known.Partitions[partition].Leader, nil
	}
	failure := &Error{Code: kerr.LeaderNotAvailable.Code, Message: "the partition has no leader",
		Request: fmt.Sprintf("find the leader of topic %s partition %d", topic, partition)}
	if !isThere {
		failure.Code, failure.Message = kerr.UnknownTopicOrPartition.Code, fmt.Sprintf("the topic has %d partitions", len(known.Partitions))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.topics, topic)
	return 0, failure
}

// doubtLeader forgets who leads a partition after an error that may come from somebody else leading it, unless
// something newer than who was asked was learned.
func (c *Cluster) doubtLeader(topic string, partition, asked int32, err error) {
	if err == nil || Classify(err) != Retriable {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.topics[topic].Partitions; int(partition) < len(known) && known[partition].Leader == asked {
		delete(c.topics, topic)
	}
}

// Topic is what the brokers know of a topic.
type Topic struct {
	Name       string
	ID         string      // in hex; a topic that is deleted and made again has another one. "" with brokers before 2.8
	Partitions []Partition // by their numbers, which begin at 0 and have no holes
	Operations Operations  // what the user may do; unknown where the broker does not say
}

// Partition is one log of a topic. Its leader is -1 while there is none.
type Partition = kmsg.MetadataResponseTopicPartition

// Operations is a set of Kafka's operations (AclOperation.java): a bit for each of their codes.
type Operations int32

// Operations on topics.
const (
	Read            = 3
	Write           = 4
	DescribeConfigs = 10
)

const unknownOperations Operations = -1 << 31

// Lacks says whether the operation is known not to be permitted.
func (o Operations) Lacks(operation int) bool {
	return o != unknownOperations && o&(1<<operation) == 0
}

// identityVersion of Metadata has ids of topics (KIP-516, Kafka 2.8), and what the user may do (KIP-430).
const identityVersion = 10

// Topic asks any broker for a topic. It is an *Error with code 3 where there is none, and 29 without DESCRIBE on it.
func (c *Cluster) Topic(ctx context.Context, name string) (Topic, error) {
	answer, err := c.metadata(ctx, []string{name})
	if err != nil {
		return Topic{}, err
	}
	topic, err := topicOf(answer, name)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.topics[name] = topic
	}
	return topic, err
}

// Topics are those that the user may see, but for the brokers' own.
func (c *Cluster) Topics(ctx context.Context) (names []string, err error) {
	answer, err := c.metadata(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, topic := range answer.Topics {
		if topic.ErrorCode == 0 && !topic.IsInternal {
			names = append(names, textOf(topic.Topic))
		}
	}
	return names, nil
}

// Reach connects, logs in and asks for the brokers.
func (c *Cluster) Reach(ctx context.Context) error {
	answer, err := c.metadata(ctx, []string{})
	if err == nil && len(answer.Brokers) == 0 {
		err = fmt.Errorf("connect to %s: the broker does not know any brokers yet", strings.Join(c.options.Brokers, ","))
	}
	return err
}

// metadata asks any broker for the brokers, and for topics, of which nil is all.
func (c *Cluster) metadata(ctx context.Context, names []string) (*kmsg.MetadataResponse, error) {
	question, answer := kmsg.NewPtrMetadataRequest(), kmsg.NewPtrMetadataResponse()
	if names != nil {
		question.Topics = []kmsg.MetadataRequestTopic{}
	}
	for _, name := range names {
		about := kmsg.NewMetadataRequestTopic()
		about.Topic = &name
		question.Topics = append(question.Topics, about)
		question.Version, question.IncludeTopicAuthorizedOperations = identityVersion, true
	}
	return answer, c.ask(ctx, anyBroker, question, answer)
}

// topicOf reads an answer about one topic.
func topicOf(answer *kmsg.MetadataResponse, name string) (Topic, error) {
	request := "look up topic " + name
	if len(answer.Topics) != 1 || answer.Topics[0].Topic == nil || *answer.Topics[0].Topic != name {
		return Topic{}, fmt.Errorf("%s: the answer has %d topics, of other names", request, len(answer.Topics))
	}
	found := &answer.Topics[0]
	if found.ErrorCode != 0 {
		return Topic{}, &Error{Code: found.ErrorCode, Request: request, Needs: "DESCRIBE on topic " + name}
	}
	topic := Topic{Name: name, Partitions: found.Partitions, Operations: Operations(found.AuthorizedOperations)}
	if answer.Version >= identityVersion {
		topic.ID = hex.EncodeToString(found.TopicID[:])
	}
	slices.SortFunc(topic.Partitions, func(a, b Partition) int { return cmp.Compare(a.Partition, b.Partition) })
	for i, p := range topic.Partitions {
		if p.Partition != int32(i) {
			return Topic{}, fmt.Errorf("%s: partition %d of %d comes at %d", request, p.Partition, len(topic.Partitions), i)
		}
	}
	return topic, nil
}
