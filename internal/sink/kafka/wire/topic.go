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

// Topic asks the brokers for a topic. It is an *Error with code 3 where there is none, and 29 without DESCRIBE on it.
func (c *Cluster) Topic(ctx context.Context, name string) (Topic, error) {
	return Topic{}, errNotBuilt
}

// TopicSpec is a topic to be created.
type TopicSpec struct {
	Name        string
	Partitions  int32             // -1 or 0 is the broker's num.partitions
	Replication int16             // -1 or 0 is the broker's default.replication.factor
	Configs     map[string]string // such as cleanup.policy
}

// Create makes a topic and waits until its partitions have leaders, some seconds at most. It returns nil where the
// topic is there already, whatever its settings are.
func (c *Cluster) Create(ctx context.Context, spec TopicSpec) error { return errNotBuilt }

// Settings are those of a topic's settings that delivery depends on.
type Settings struct {
	MaxMessageBytes   int               // of a whole batch as it is sent, compressed
	MinInsyncReplicas int               // that must have a batch before it is acknowledged
	CleanupPolicy     string            // "delete", "compact" or "compact,delete"
	Retention         Retention         // of cleanup.policy delete
	Values            map[string]string // all of them, as the broker writes them
}

// Settings asks for a topic's settings. It is an *Error with code 29 without DESCRIBE_CONFIGS on the topic.
func (c *Cluster) Settings(ctx context.Context, topic string) (Settings, error) {
	return Settings{}, errNotBuilt
}
