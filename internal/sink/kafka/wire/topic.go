package wire

import (
	"fmt"
	"slices"

	"github.com/segmentio/kafka-go/protocol/metadata"
)

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
