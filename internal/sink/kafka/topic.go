package kafka

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// topic is what the sink knows of a topic.
type topic struct {
	name       string
	id         string // Kafka's, "" if it is not known
	limit      atomic.Int64
	partitions []*partition // those that are written to
	fenced     bool         // nobody who opened before can write to it any more
	made       bool         // by this sink, because data chose it
	compacted  bool

	part  []byte // of the mark
	moved bool   // part is not true any more
}

// partition is one log. A goroutine of Write has it for itself.
type partition struct {
	topic    *topic
	number   int32
	first    int64 // of the log, when it was looked at
	next     int64 // the offset after what is known to be in the log
	sequence int32 // of the next batch
	frozen   *frozen
	others   span          // in which somebody else has written, and nobody has looked; zero is none
	inspect  time.Time     // when to look at the next
	wait     time.Duration // from the last look until then
	indexes  []int32       // of the messages of this Write
	turn     uint64        // the Write that the indexes are of
}

// frozen is a batch that was encoded and is not acknowledged. It may be in the log, or on its way there, so it must not
// change any more.
type frozen struct {
	bytes []byte
	count int
	since time.Time
	taken bool // a connection was given up that may still read the bytes
}

// defaultLimit is Kafka's default of max.message.bytes, for topics whose settings must not be read.
const defaultLimit = 1048588

// ensure makes sure that a topic is there and may be written to, and returns what is known of it.
func (s *Sink) ensure(ctx context.Context, name string) (*topic, error) {
	known, err := s.cluster.Topic(ctx, name)
	if wire.Code(err) == codeUnknownTopic {
		if err := s.create(ctx, name); err != nil {
			return nil, err
		}
		known, err = s.cluster.Topic(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	identity, err := s.cluster.Identity(ctx, name)
	if err == nil && identity.Operations.Lacks(wire.Write) {
		err = unwritable(name)
	}
	if err != nil {
		return nil, err
	}
	settings, err := s.settings(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := acknowledges(known, settings); err != nil {
		return nil, err
	}
	t := newTopic(known, identity, settings)
	t.made = s.isMade(name)
	return t, nil
}

// create makes a topic, where that is allowed.
func (s *Sink) create(ctx context.Context, name string) error {
	if !s.options.Create {
		return topicPermanent("open topic %s: it does not exist: create it, or let the exporter do it with kafka.create", name)
	}
	if err := s.admit(name); err != nil {
		return err
	}
	return s.cluster.Create(ctx, s.options.spec(name))
}

// settings are Kafka's defaults where they must not be read.
func (s *Sink) settings(ctx context.Context, name string) (wire.Settings, error) {
	settings, err := s.cluster.Settings(ctx, name)
	if wire.Code(err) == codeTopicForbidden {
		return wire.Settings{MaxMessageBytes: defaultLimit}, nil
	}
	return settings, err
}

func newTopic(known wire.Topic, identity wire.Identity, settings wire.Settings) *topic {
	t := &topic{name: known.Name, id: identity.ID, compacted: isCompacted(settings.CleanupPolicy)}
	t.limit.Store(int64(settings.MaxMessageBytes))
	for i := range known.Partitions {
		t.partitions = append(t.partitions, &partition{topic: t, number: int32(i)})
	}
	return t
}

// acknowledges finds a topic that can never give the acknowledgement that is asked for.
func acknowledges(known wire.Topic, settings wire.Settings) error {
	for _, p := range known.Partitions {
		if have, need := len(p.Replicas), settings.MinInsyncReplicas; have > 0 && have < need {
			return topicPermanent("open topic %s: partition %d has %d replicas, and min.insync.replicas is %d, so no record can be acknowledged: "+
				"lower min.insync.replicas of the topic, or give it more replicas", known.Name, p.ID, have, need)
		}
	}
	return nil
}

// partitionOf is where messages with the key belong. A message without a key belongs where the empty key does.
func (t *topic) partitionOf(key []byte) *partition {
	return t.partitions[batch.Partition(key, len(t.partitions))]
}

// raised reads the limit of the message's topic anew, and says whether somebody has raised it. Where no broker answers,
// or the settings must not be read, it stays as it is until the sink is opened again.
func (s *Sink) raised(ctx context.Context, m *sink.Message) bool {
	t := s.topics[m.Destination]
	if t == nil || s.refused[m.ID] != nil {
		return false
	}
	settings, err := s.cluster.Settings(ctx, t.name)
	limit := int64(settings.MaxMessageBytes)
	if err != nil || limit <= t.limit.Load() {
		return false
	}
	t.limit.Store(limit)
	return true
}

// shrink keeps what a refusal has shown of max.message.bytes.
func (t *topic) shrink(refused int) {
	for {
		have := t.limit.Load()
		if int64(refused) > have || t.limit.CompareAndSwap(have, int64(refused)-1) {
			return
		}
	}
}
