package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Tail reads a topic from its start on as it grows, with franz-go's decoder. It is for one goroutine.
type Tail struct {
	reader *reader
	next   map[int32]int64 // offset to go on from
}

// Tail returns a reader of a topic, which need not exist yet.
func (c *Cluster) Tail(topic string, options JudgeOptions) *Tail {
	return &Tail{reader: c.reader(topic, options), next: map[int32]int64{}}
}

// Partitions is how many partitions the topic has, as far as Read has seen.
func (t *Tail) Partitions() int { return len(t.next) }

// Read returns what has come since the last call, up to the topic's present end, sorted by partition and offset. A
// topic that does not exist has nothing. While a partition has no leader, Read waits, until ctx ends.
func (t *Tail) Read(ctx context.Context) ([]Record, error) {
	var ends map[int32]int64
	err := until(ctx, func(ctx context.Context) (err error) {
		if ends, err = t.reader.end(ctx); errors.Is(err, kerr.UnknownTopicOrPartition) {
			return permanent{err}
		}
		return err
	})
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read on in %s: %w", t.reader.topic, err)
	}
	t.reader.records = nil
	for _, p := range slices.Sorted(maps.Keys(ends)) {
		if err := t.reader.readPartition(ctx, p, t.next[p], ends[p]); err != nil {
			return nil, fmt.Errorf("read on in %s/%d: %w", t.reader.topic, p, err)
		}
		t.next[p] = max(t.next[p], ends[p])
	}
	return t.reader.records, nil
}
