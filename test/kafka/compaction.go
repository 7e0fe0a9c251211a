package kafka

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// fillerKey is the key of the records that AwaitCompaction writes.
const fillerKey = "\x00filler"

// CompactedQuickly returns the configuration of a topic that is compacted within
// a second and forgets tombstones as fast; see AwaitCompaction.
func CompactedQuickly() map[string]string {
	return map[string]string{
		"cleanup.policy": "compact", "segment.ms": "500", "min.cleanable.dirty.ratio": "0.001",
		"delete.retention.ms": "500", "max.compaction.lag.ms": "1000",
	}
}

// AwaitCompaction waits until a partition of a topic of CompactedQuickly holds every key at
// most once and no tombstone, and returns what it holds, as read_committed sees it.
// The newest segment is never compacted, and a new one begins only with a write: so
// it writes records of its own into each partition, which it leaves out of the result.
// Nobody else may write meanwhile.
func (c *Cluster) AwaitCompaction(tb testing.TB, topic string) []Record {
	tb.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		tb.Fatalf("wait for compaction of %s: %v", topic, err)
	}
	defer client.Close()
	var left []Record
	c.await(tb, "wait for compaction of "+topic, func(ctx context.Context) error {
		if err := c.writeFillers(ctx, client, topic); err != nil {
			return err
		}
		left = slices.DeleteFunc(c.ConsumeFast(tb, topic, JudgeOptions{ReadCommitted: true}), func(r Record) bool {
			return string(r.Key) == fillerKey
		})
		return compacted(left)
	})
	return left
}

func (c *Cluster) writeFillers(ctx context.Context, client *kgo.Client, topic string) error {
	about, err := describe(ctx, c.client, topic)
	if err != nil {
		return err
	}
	var fillers []*kgo.Record
	for _, p := range about.Partitions {
		fillers = append(fillers, &kgo.Record{Topic: topic, Partition: p.Partition, Key: []byte(fillerKey), Value: []byte{}})
	}
	return client.ProduceSync(ctx, fillers...).FirstErr()
}

func compacted(records []Record) error {
	type row struct {
		partition int
		key       string
	}
	seen := map[row]bool{}
	for _, r := range records {
		at := row{r.Partition, string(r.Key)}
		if r.Value == nil {
			return fmt.Errorf("partition %d: a tombstone of %q at offset %d", r.Partition, r.Key, r.Offset)
		}
		if seen[at] {
			return fmt.Errorf("partition %d: %q is there again at offset %d", r.Partition, r.Key, r.Offset)
		}
		seen[at] = true
	}
	return nil
}
