package wire

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/segmentio/kafka-go/protocol/createtopics"
	"github.com/segmentio/kafka-go/protocol/describeconfigs"
	"github.com/segmentio/kafka-go/protocol/findcoordinator"
	"github.com/segmentio/kafka-go/protocol/metadata"
	"github.com/segmentio/kafka-go/protocol/offsetcommit"
	"github.com/segmentio/kafka-go/protocol/offsetfetch"
	"github.com/twmb/franz-go/pkg/kmsg"
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

// GroupOffset is how far a group of consumers has read a partition, as the brokers keep it.
type GroupOffset struct {
	Offset int64  // of the next record to be read
	Note   string // that was committed with it
}

// codeNoGroup is GROUP_ID_NOT_FOUND: nobody has read anything as the group (KIP-848 tells that apart).
const codeNoGroup = 69

// groupCoordinator is the broker that keeps the offsets of a group. It is asked for each time: offsets are seldom
// committed here.
func (c *Cluster) groupCoordinator(ctx context.Context, group string) (int32, error) {
	answer, err := ask[*findcoordinator.Response](ctx, c.link, anyBroker, &findcoordinator.Request{Key: group, KeyType: 0})
	if err != nil {
		return 0, err
	}
	if answer.ErrorCode != 0 {
		return 0, &Error{Code: answer.ErrorCode, Message: answer.ErrorMessage, Request: "find the coordinator of group " + group, Needs: readOn(group)}
	}
	return answer.NodeID, nil
}

func readOn(group string) string { return "READ on group " + group }

// CommitOffsets notes how far a group without members has read the topic, by partition.
func (c *Cluster) CommitOffsets(ctx context.Context, group, topic string, offsets map[int32]GroupOffset) error {
	broker, err := c.groupCoordinator(ctx, group)
	if err != nil {
		return err
	}
	request := &offsetcommit.Request{GroupID: group, GenerationID: -1, RetentionTimeMs: -1, Topics: []offsetcommit.RequestTopic{{Name: topic}}}
	for number, o := range offsets {
		request.Topics[0].Partitions = append(request.Topics[0].Partitions, offsetcommit.RequestPartition{
			PartitionIndex: number, CommittedOffset: o.Offset, CommitTimestamp: -1, CommittedLeaderEpoch: -1, CommittedMetadata: o.Note,
		})
	}
	answer, err := ask[*offsetcommit.Response](ctx, c.link, broker, request)
	if err != nil {
		return err
	}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return &Error{Code: p.ErrorCode, Request: "commit offsets of group " + group, Needs: readOn(group)}
			}
		}
	}
	return nil
}

// GroupOffsets are how far the group has read the partitions of the topic; those that it has not read are left out.
func (c *Cluster) GroupOffsets(ctx context.Context, group, topic string, partitions []int32) (map[int32]GroupOffset, error) {
	broker, err := c.groupCoordinator(ctx, group)
	if err != nil {
		return nil, err
	}
	answer, err := ask[*offsetfetch.Response](ctx, c.link, broker, &offsetfetch.Request{
		GroupID: group, Topics: []offsetfetch.RequestTopic{{Name: topic, PartitionIndexes: partitions}},
	})
	if err != nil {
		return nil, err
	}
	failure := &Error{Code: answer.ErrorCode, Request: "read the offsets of group " + group, Needs: readOn(group)}
	found := map[int32]GroupOffset{}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				failure.Code = p.ErrorCode
			}
			if p.CommittedOffset >= 0 {
				found[p.PartitionIndex] = GroupOffset{p.CommittedOffset, p.Metadata}
			}
		}
	}
	switch failure.Code {
	case 0, codeNoGroup:
		return found, nil
	}
	return nil, failure
}

// identityVersion of Metadata has ids of topics (KIP-516, Kafka 2.8), and what the user may do (KIP-430).
const identityVersion = 10

// Identity is what Kafka says of a topic beyond its name.
type Identity struct {
	ID string // in hex; a topic that is deleted and made again has another one. "" with brokers before 2.8

	// Operations is what the user may do, a bit for each code of AclOperation; unknown where the broker does not say.
	Operations Operations
}

// Identity asks any broker for the identity of a topic. It is an *Error as that of Topic.
func (c *Cluster) Identity(ctx context.Context, topic string) (Identity, error) {
	question, about := kmsg.NewPtrMetadataRequest(), kmsg.NewMetadataRequestTopic()
	about.Topic = &topic
	question.Version, question.IncludeTopicAuthorizedOperations = identityVersion, true
	question.Topics = append(question.Topics, about)
	answer, err := askFlexible[*kmsg.MetadataResponse](ctx, c.link, anyBroker, question)
	switch {
	case Code(err) == codeUnsupportedVersion:
		return Identity{Operations: unknownOperations}, nil // the broker is older
	case err != nil:
		return Identity{}, err
	}
	return identityOf(answer, topic)
}

// identityOf reads an answer about one topic.
func identityOf(answer *kmsg.MetadataResponse, topic string) (Identity, error) {
	if len(answer.Topics) != 1 || answer.Topics[0].Topic == nil || *answer.Topics[0].Topic != topic {
		return Identity{}, fmt.Errorf("look up topic %s: the answer has %d topics, of other names", topic, len(answer.Topics))
	}
	known := &answer.Topics[0]
	if known.ErrorCode != 0 {
		return Identity{}, &Error{Code: known.ErrorCode, Request: "look up topic " + topic, Needs: "DESCRIBE on topic " + topic}
	}
	return Identity{ID: hex.EncodeToString(known.TopicID[:]), Operations: Operations(known.AuthorizedOperations)}, nil
}

// Operations is a set of Kafka's operations (AclOperation.java), by their codes.
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
