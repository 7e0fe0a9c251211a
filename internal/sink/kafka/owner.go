package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// lastRecords is how far before its end a log is looked into. Markers and batches that compaction emptied count.
const lastRecords = 200

// inspect looks for records of another cluster in topics that are about to be written to: behind the mark, or, where it
// does not have the topic, at both ends of each partition. It returns the topics without those that data chose and that
// are not ours to write to.
func (s *Sink) inspect(ctx context.Context, topics []*topic, want *mark) ([]*topic, error) {
	var mu sync.Mutex
	refused := map[*topic]error{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.tuning.readers)
	for _, t := range topics {
		for _, p := range t.partitions {
			group.Go(func() error {
				err := s.inspectPartition(ctx, p, span{max(p.first, want.from(t.name, p.number)), p.next})
				if refusesTopic(err) && s.chosen(t.name) {
					mu.Lock()
					defer mu.Unlock()
					refused[t], err = err, nil
				}
				return err
			})
		}
	}
	err := group.Wait()
	for t, err := range refused {
		s.close(t.name, err)
	}
	return slices.DeleteFunc(topics, func(t *topic) bool { return refused[t] != nil }), err
}

// inspectAll looks at both ends of each of the topic's partitions.
func (s *Sink) inspectAll(ctx context.Context, t *topic) error {
	for _, p := range t.partitions {
		if err := s.inspectPartition(ctx, p, span{p.first, p.next}); err != nil {
			return err
		}
	}
	return nil
}

// span is offsets of a partition.
type span struct{ from, to int64 }

// strange notes what is in the partition behind what the sink knew of it, and that it has not written. So many markers
// are expected there.
func (p *partition) strange(from, to, markers int64) {
	if to-from <= markers {
		return
	}
	if p.others.to == 0 {
		p.others.from = from
	}
	p.others.to = to
}

// markers is how many a Write leaves behind what it has written into a partition.
func (s *Sink) markers() int64 {
	if s.options.Delivery == Transactional {
		return 1
	}
	return 0
}

// inspectOthers looks at what was put into the partitions beside what this sink has written. So two clusters that begin
// at the same moment, when neither could see the other, find each other with their first records. A topic that is
// shared rightly is looked at less and less often.
func (s *Sink) inspectOthers(ctx context.Context, partitions []*partition) error {
	for _, p := range partitions {
		if p.others.to == 0 || s.now().Before(p.inspect) {
			continue
		}
		if err := s.inspectPartition(ctx, p, p.others); err != nil {
			return s.forbidden(p.topic.name, err)
		}
		p.others, p.wait = span{}, min(max(2*p.wait, time.Millisecond), s.tuning.look)
		p.inspect = s.now().Add(p.wait)
	}
	return nil
}

// inspectPartition looks at both ends of a piece of a log. What must not be read is not looked at.
func (s *Sink) inspectPartition(ctx context.Context, p *partition, of span) error {
	if s.options.Judge == nil || of.from >= of.to {
		return nil
	}
	err := s.inspectFrom(ctx, p, of.from)
	if last := max(of.from, of.to-lastRecords); err == nil && last > of.from {
		err = s.inspectFrom(ctx, p, last)
	}
	return err
}

// inspectFrom looks at what one fetch brings.
func (s *Sink) inspectFrom(ctx context.Context, p *partition, offset int64) error {
	var result wire.FetchResult
	err := s.persist(ctx, fmt.Sprintf("read topic %s partition %d", p.topic.name, p.number), func(ctx context.Context) (err error) {
		result, err = s.cluster.Fetch(ctx, wire.FetchRequest{Topic: p.topic.name, Partition: p.number, Offset: offset, MaxBytes: s.tuning.fetch})
		return unforbidden(err)
	})
	switch {
	case wire.Code(err) == codeTopicForbidden, wire.Code(err) == codeOffsetOutOfRange:
		return nil
	case err != nil:
		return err
	}
	return s.judge(p, offset, result.Records)
}

// judge looks at the records of whole batches. What is damaged is found by whoever reads the tail. What a transaction
// has aborted nobody reads; one that is open may be committed.
func (s *Sink) judge(p *partition, from int64, data []byte) error {
	decoder, open := batch.NewDecoder(s.tuning.contents), map[int64]error{}
	for {
		b, rest, err := batch.Read(data)
		if err != nil || b == nil {
			break
		}
		data = rest
		if b.Control {
			committed, known, err := decoder.Committed(b)
			if verdict := open[b.Producer.ID]; verdict != nil && committed {
				return verdict
			}
			if err == nil && known {
				delete(open, b.Producer.ID)
			}
			continue
		}
		verdict := s.judgeBatch(p, from, decoder, b)
		if verdict != nil && !b.Producer.Transactional {
			return verdict
		}
		if verdict != nil {
			open[b.Producer.ID] = verdict
		}
	}
	for _, verdict := range open {
		return verdict
	}
	return nil
}

// judgeBatch looks at the records of one batch from the offset on.
func (s *Sink) judgeBatch(p *partition, from int64, decoder *batch.Decoder, b *batch.Batch) error {
	var foreign *sink.ForeignError
	err := decoder.Each(b, func(e *batch.Entry) error {
		if e.Offset < from {
			return nil
		}
		return s.options.Judge(storedOf(p.topic.name, p.number, e))
	})
	if errors.As(err, &foreign) && (foreign.Same || p.topic.compacted) {
		return p.topic.belongs(foreign)
	}
	return nil
}

// belongs says what to change in the configuration. In a compacted topic two clusters share keys, whatever their names.
// That two have one name is nothing that data could bring about, whoever chose the topic.
func (t *topic) belongs(foreign *sink.ForeignError) error {
	if foreign.Same {
		return permanent("open topic %s: %w", t.name, foreign)
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
