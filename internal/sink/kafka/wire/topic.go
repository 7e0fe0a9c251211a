package wire

import "context"

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
	ISR      []int32
}

func (t *Topic) leader(partition int32) int32 {
	if partition < 0 || int(partition) >= len(t.Partitions) {
		return -1
	}
	return t.Partitions[partition].Leader
}

// Topic asks the brokers for a topic. It is an *Error with code 3 where there is none, and 29 without DESCRIBE on it.
func (c *Cluster) Topic(ctx context.Context, name string) (Topic, error) {
	topic, err := c.askTopic(ctx, name)
	if err == nil {
		c.leaders.learn(topic)
	}
	return topic, err
}
