package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// lastRecords is how far before its end a log is looked into. Markers and batches that compaction emptied count.
const lastRecords = 200

// inspect looks for records of another cluster in topics that are about to be written to: behind the mark, or, where it does not
// have the topic, at both ends of each partition.
func (s *Sink) inspect(ctx context.Context, topics []*topic, want *mark) error {
	if s.options.Judge == nil {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.tuning.readers)
	for _, t := range topics {
		for _, p := range t.partitions {
			if from := max(p.first, want.from(t.name, p.number)); from < p.next && !s.chosen(t.name) {
				group.Go(func() error { return s.inspectPartition(ctx, p, from, max(from, p.next-lastRecords)) })
			}
		}
	}
	return group.Wait()
}

// inspectPartition looks at one piece of a log from each of the offsets on. What must not be read is not looked at.
func (s *Sink) inspectPartition(ctx context.Context, p *partition, offsets ...int64) error {
	verb := fmt.Sprintf("read topic %s partition %d", p.topic.name, p.number)
	for i, offset := range offsets {
		if i > 0 && offset == offsets[i-1] {
			continue
		}
		var result wire.FetchResult
		err := s.persist(ctx, verb, func(ctx context.Context) (err error) {
			result, err = s.cluster.Fetch(ctx, wire.FetchRequest{Topic: p.topic.name, Partition: p.number, Offset: offset, MaxBytes: s.tuning.fetch})
			return unforbidden(err)
		})
		if wire.Code(err) == codeTopicForbidden || wire.Code(err) == codeOffsetOutOfRange {
			return nil
		}
		if err == nil {
			err = s.judge(p, offset, result.Records)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// judge looks at the records of whole batches. What is damaged is found by whoever reads the tail.
func (s *Sink) judge(p *partition, from int64, data []byte) error {
	decoder := batch.NewDecoder(s.tuning.contents)
	for {
		b, rest, err := batch.Read(data)
		if err != nil || b == nil {
			return nil
		}
		data = rest
		if b.Control {
			continue
		}
		var foreign *sink.ForeignError
		err = decoder.Each(b, func(e *batch.Entry) error {
			if e.Offset < from {
				return nil
			}
			return s.options.Judge(storedOf(p.topic.name, p.number, e))
		})
		if errors.As(err, &foreign) && (foreign.Same || p.topic.compacted) {
			return p.topic.belongs(foreign)
		}
	}
}

// belongs says what to change in the configuration. In a compacted topic two clusters share keys, whatever their names.
func (t *topic) belongs(foreign *sink.ForeignError) error {
	if foreign.Same {
		return topicPermanent("open topic %s: %w", t.name, foreign)
	}
	return topicPermanent("open topic %s: %w: the topic is compacted, and keys do not name the cluster, so each would delete the other's objects: "+
		"put {cluster} into kafka.topic", t.name, foreign)
}

// storedOf is a record as readers of logs have it.
func storedOf(topic string, number int32, e *batch.Entry) *sink.Stored {
	stored := &sink.Stored{
		Place:       fmt.Sprintf("topic %s partition %d offset %d", topic, number, e.Offset),
		Destination: topic, Key: e.Key, Value: e.Value, Time: time.UnixMilli(e.Timestamp),
	}
	for name, value := range e.Headers() {
		stored.Headers = append(stored.Headers, sink.Header{Name: string(name), Value: string(value)})
	}
	return stored
}

func isCompacted(policy string) bool { return strings.Contains(policy, "compact") }
