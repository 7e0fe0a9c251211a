package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// inspector looks for records of other clusters in topics that are written to.
type inspector struct {
	*brokers
	chosen *chosen
}

// lastRecords is how far before its end a log is looked into. Markers and batches that compaction emptied count.
const lastRecords = 200

// inspect looks for records of another cluster in topics that are about to be written to: after the mark, or, where it
// does not have the topic, at both ends of each partition. It returns the topics without those that data chose and that
// are not ours to write to.
func (i *inspector) inspect(ctx context.Context, topics []*topic, want *mark) ([]*topic, error) {
	var mu sync.Mutex
	refused := map[*topic]error{}
	err := together(ctx, i.tuning.readers, partitionsOf(topics), func(ctx context.Context, p *partition) error {
		err := i.inspectPartition(ctx, p, span{max(p.first, want.from(p.topic.name, p.number)), p.next})
		if refusesTopic(err) && i.chosen.has(p.topic.name) {
			mu.Lock()
			defer mu.Unlock()
			refused[p.topic], err = err, nil
		}
		return err
	})
	for t, err := range refused {
		i.chosen.close(t.name, err)
	}
	return slices.DeleteFunc(topics, func(t *topic) bool { return refused[t] != nil }), err
}

// inspectAll looks at both ends of each of the topic's partitions.
func (i *inspector) inspectAll(ctx context.Context, t *topic) error {
	for _, p := range t.partitions {
		if err := i.inspectPartition(ctx, p, span{p.first, p.next}); err != nil {
			return err
		}
	}
	return nil
}

// inspectOthers looks at what was put into the partitions beside what this sink has written. So two clusters that begin
// at the same moment, when neither could see the other, find each other with their first records. A topic that is
// shared rightly is looked at less and less often.
func (i *inspector) inspectOthers(ctx context.Context, partitions []*partition) error {
	for _, p := range partitions {
		if p.others.to == 0 || i.now().Before(p.inspect) {
			continue
		}
		if err := i.inspectPartition(ctx, p, p.others); err != nil {
			return i.chosen.forbidden(p.topic.name, err)
		}
		p.others, p.wait = span{}, min(max(2*p.wait, time.Millisecond), i.tuning.look)
		p.inspect = i.now().Add(p.wait)
	}
	return nil
}

// inspectPartition looks at both ends of a piece of a log: at what one fetch brings. What must not be read is not
// looked at.
func (i *inspector) inspectPartition(ctx context.Context, p *partition, of span) error {
	if i.options.Judge == nil || of.from >= of.to {
		return nil
	}
	for _, offset := range slices.Compact([]int64{of.from, max(of.from, of.to-lastRecords)}) {
		var result wire.FetchResult
		err := i.persist(ctx, "read "+p.String(), func(ctx context.Context) (err error) {
			result, err = i.cluster.Fetch(ctx, wire.FetchRequest{Topic: p.topic.name, Partition: p.number, Offset: offset, MaxBytes: i.tuning.fetch})
			return err
		})
		if code := wire.Code(err); code == kerr.TopicAuthorizationFailed.Code || code == kerr.OffsetOutOfRange.Code {
			continue
		}
		if err == nil {
			err = i.judgeAll(p, offset, result.RecordBatches)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// judgeAll looks at the records of whole batches, from the offset on. What is damaged is found by whoever reads the
// tail. What a transaction has aborted nobody reads; one that is open may be committed.
func (i *inspector) judgeAll(p *partition, from int64, data []byte) error {
	verdicts := newUndecided[error](i.tuning)
	for b, err := range batch.All(data) {
		if err != nil {
			break
		}
		found, _ := verdicts.take(b, func(e *batch.Entry) (error, bool) {
			if e.Offset < from {
				return nil, false
			}
			verdict := i.judge(p, e)
			return verdict, verdict != nil
		})
		if len(found) > 0 {
			return found[0]
		}
	}
	for _, found := range verdicts.open {
		if len(found) > 0 {
			return found[0]
		}
	}
	return nil
}

// judge looks at one record.
func (i *inspector) judge(p *partition, e *batch.Entry) error {
	m := storedOf(p.topic.name, p.number, e)
	if m.Header(sink.HeaderOp) == sink.OpState {
		return topicPermanent("open topic %s: it holds the saved state of an exporter, and records would destroy that: choose another kafka.topic", p.topic.name)
	}
	var foreign *sink.ForeignError
	switch {
	case !errors.As(i.options.Judge(m), &foreign):
		return nil
	case foreign.Same: // that two have one name is nothing that data could bring about, whoever chose the topic
		return sink.Permanent("open topic %s: %w", p.topic.name, foreign)
	case p.topic.compacted: // two clusters share keys there, whatever their names
		return topicPermanent("open topic %s: %w: the topic is compacted, and keys do not name the cluster, so each would delete the other's objects: "+
			"put {cluster} into kafka.topic", p.topic.name, foreign)
	}
	return nil
}

// storedOf is a record as readers of logs have it.
func storedOf(topic string, number int32, e *batch.Entry) *sink.Stored {
	stored := &sink.Stored{
		Place:       fmt.Sprintf("topic %s partition %d offset %d", topic, number, e.Offset),
		Destination: topic, Partition: number, Key: e.Key, Value: e.Value, Time: time.UnixMilli(e.Timestamp),
	}
	for name, value := range e.Headers() {
		stored.Headers = append(stored.Headers, sink.Header{Name: string(name), Value: string(value)})
	}
	return stored
}
