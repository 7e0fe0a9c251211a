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

// objection is why a topic cannot be written to, and since when that is known.
type objection struct {
	refusal *sink.RejectedError
	since   time.Time
}

// mostClosed bounds how many of them are remembered.
const mostClosed = 1000

// isChosen says whether data chose the topic.
func (c *catalog) isChosen(name string) bool {
	return !c.isForetold(name) || slices.Contains(c.options.Found, name)
}

// isForetold says whether Open makes the topic, which does not count as one of a label.
func (c *catalog) isForetold(name string) bool { return slices.Contains(c.options.Topics, name) }

// shun remembers what speaks against a topic, for a moment: looking again costs some requests.
func (c *catalog) shun(name string, err error) *sink.RejectedError {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.shut) >= mostClosed {
		clear(c.shut)
	}
	c.shut[name] = objection{&sink.RejectedError{Reason: "topic", Err: err, NoPlace: true}, c.now()}
	return c.shut[name].refusal
}

// refusal is what speaks against a topic, nil where nothing is known.
func (c *catalog) refusal(name string) *sink.RejectedError {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now().Sub(c.shut[name].since) > c.tuning.closed {
		return nil
	}
	return c.shut[name].refusal
}

// forbidden turns an error of a request about a topic that data chose into one that Open answers: the next Write
// rejects what is meant for the topic. Other errors stay as they are.
func (c *catalog) forbidden(name string, err error) error {
	if err == nil || name == "" || !refusesTopic(err) || !c.isChosen(name) {
		return err
	}
	c.shun(name, err)
	return reopen("%v: open the sink again", err) // not wrapped: it is not permanent
}

// admit says whether one more topic may be made because data chose it.
func (c *catalog) admit(name string) error {
	if c.isForetold(name) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	most := c.options.LabelTopics
	if most == 0 || c.known.made() < most {
		c.making[name] = true
		return nil
	}
	if !c.full {
		c.full = true
		c.options.Notice(fmt.Sprintf("has created %d topics for labels and names, as many as kafka.labelTopics allows: records for further topics become dead letters", most))
	}
	return topicPermanent("open topic %s: it does not exist, and labels and names have made %d topics already: create it, or raise kafka.labelTopics", name, most)
}

// lastRecords is how far before its end a log is looked into. Markers and batches that compaction emptied count.
const lastRecords = 200

// inspect looks for records of another cluster in topics that are about to be written to: after the mark, or, where it
// does not have the topic, at both ends of each partition. It returns the topics without those that data chose and that
// are not ours to write to.
func (c *catalog) inspect(ctx context.Context, topics []*topic, want *mark) ([]*topic, error) {
	var mu sync.Mutex
	refused := map[*topic]error{}
	err := together(ctx, c.tuning.readers, partitionsOf(topics), func(ctx context.Context, p *partition) error {
		err := c.inspectPartition(ctx, p, span{max(p.first, want.from(p.topic.name, p.number)), p.next})
		if refusesTopic(err) && c.isChosen(p.topic.name) {
			mu.Lock()
			defer mu.Unlock()
			refused[p.topic], err = err, nil
		}
		return err
	})
	for t, err := range refused {
		c.shun(t.name, err)
	}
	return slices.DeleteFunc(topics, func(t *topic) bool { return refused[t] != nil }), err
}

// inspectAll looks at both ends of each of the topic's partitions.
func (c *catalog) inspectAll(ctx context.Context, t *topic) error {
	for _, p := range t.partitions {
		if err := c.inspectPartition(ctx, p, span{p.first, p.next}); err != nil {
			return err
		}
	}
	return nil
}

// inspectOthers looks at what was put into the partitions beside what this sink has written. So two clusters that begin
// at the same moment, when neither could see the other, find each other with their first records. A topic that is
// shared rightly is looked at less and less often.
func (c *catalog) inspectOthers(ctx context.Context, partitions []*partition) error {
	for _, p := range partitions {
		if p.others.to == 0 || c.now().Before(p.inspect) {
			continue
		}
		if err := c.inspectPartition(ctx, p, p.others); err != nil {
			return c.forbidden(p.topic.name, err)
		}
		p.wait = min(max(2*p.wait, time.Millisecond), c.tuning.look)
		p.inspect = c.now().Add(p.wait)
	}
	return nil
}

// inspectPartition looks at both ends of a piece of a log: at what one fetch brings. What is not committed yet is looked
// at later, as what others write is. What must not be read is not looked at, and what is damaged is found by whoever
// reads the tail.
func (c *catalog) inspectPartition(ctx context.Context, p *partition, of span) error {
	if c.options.Judge == nil || of.from >= of.to {
		return nil
	}
	p.others = span{}
	f := newFetcher(c.brokers, sink.Start{})
	for _, offset := range slices.Compact([]int64{of.from, max(of.from, of.to-lastRecords)}) {
		piece, result := f.stretchOf(p, offset), wire.FetchResult{}
		err := c.persist(ctx, "read "+p.String(), func(ctx context.Context) (err error) {
			result, err = c.cluster.Fetch(ctx, wire.FetchRequest{Topic: p.topic.name, Partition: p.number, Offset: offset, MaxBytes: c.tuning.fetch})
			return err
		})
		if code := wire.Code(err); code == kerr.TopicAuthorizationFailed.Code || code == kerr.OffsetOutOfRange.Code {
			continue
		}
		if err == nil {
			err = f.take(piece, &result, func(e *batch.Entry) error {
				if e.Offset < offset {
					return nil
				}
				return c.judge(p, e)
			})
		}
		if err != nil && !errors.As(err, new(*unreadableError)) {
			return err
		}
		if len(result.RecordBatches) == 0 && p.others.to == 0 {
			p.others = span{offset, of.to}
		}
	}
	return nil
}

// judge looks at one record.
func (c *catalog) judge(p *partition, e *batch.Entry) error {
	m := storedOf(p.topic.name, p.number, e)
	if m.Header(sink.HeaderOp) == sink.OpState {
		return topicPermanent("open topic %s: it holds the saved state of an exporter, and records would destroy that: choose another kafka.topic", p.topic.name)
	}
	var foreign *sink.ForeignError
	switch {
	case !errors.As(c.options.Judge(m), &foreign):
		return nil
	case foreign.Same: // that two have one name is nothing that data could bring about, whoever chose the topic
		return sink.Permanent("open topic %s: %w", p.topic.name, foreign)
	case p.topic.compacted: // two clusters share keys there, whatever their names
		return topicPermanent("open topic %s: %w: the topic is compacted, and keys do not name the cluster, so each would delete the other's objects: "+
			"put {cluster} into kafka.topic", p.topic.name, foreign)
	}
	return nil
}
