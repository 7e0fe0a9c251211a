package e2e

import (
	"context"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// seat is where in Kafka an event stands, and what stands beside it.
type seat struct {
	topic      string
	wanted     string // topic of the event's resource
	partition  int
	partitions int // of the topic
	offset     int64
	key        string
	tombstones int // after the event
}

// followTopics reads the sink's topics as read_committed sees them, with a client and a decoder that are none of the
// exporter's.
func followTopics(c *kafka.Cluster, s kafkaSink, resources []string) *follower {
	var logs []*topicLog
	for _, topic := range s.topics(resources) {
		logs = append(logs, &topicLog{prefix: s.prefix, tail: c.Tail(topic, kafka.JudgeOptions{ReadCommitted: true}), last: map[int]*event{}})
	}
	return &follower{
		name: s.name,
		more: func(ctx context.Context, have int) ([]event, error) {
			var events []event
			for _, log := range logs {
				found, err := log.read(ctx, have+len(events))
				if err != nil {
					return nil, err
				}
				events = append(events, found...)
			}
			return events, nil
		},
		again: func() *follower { return followTopics(c, s, resources) },
	}
}

func topicOf(prefix, resource string) string {
	if strings.HasSuffix(prefix, ".") {
		return prefix + resource
	}
	return prefix
}

// topicLog is one topic. Its events come by partition and, within it, in order.
type topicLog struct {
	prefix string
	tail   *kafka.Tail
	last   map[int]*event // of each partition
}

func (l *topicLog) read(ctx context.Context, have int) ([]event, error) {
	records, err := l.tail.Read(ctx)
	if err != nil {
		return nil, err
	}
	var events []event
	for i := range records {
		r := &records[i]
		e, err := l.event(r)
		if err != nil {
			return nil, fmt.Errorf("record %d of %s/%d: %w", r.Offset, r.Topic, r.Partition, err)
		}
		if e != nil {
			e.place = have + len(events) + 1
			l.last[r.Partition] = e
			events = append(events, *e)
		}
	}
	return events, nil
}

// event is nil for a tombstone, which belongs to the delete right before it.
func (l *topicLog) event(r *kafka.Record) (*event, error) {
	id, own := "", ""
	for _, h := range r.Headers {
		switch h.Key {
		case "kubecdc-id":
			id = string(h.Value)
		case ownHeader:
			own = string(h.Value)
		}
	}
	if r.Value == nil {
		before := l.last[r.Partition]
		if before == nil || before.op() != "deleted" || before.seat.key != string(r.Key) || before.ID != id || before.seat.offset+1 != r.Offset {
			return nil, fmt.Errorf("a tombstone of %s with id %q stands behind %s", r.Key, id, before)
		}
		before.seat.tombstones++
		return nil, nil
	}
	e, err := parseEvent(r.Value)
	if err != nil {
		return nil, err
	}
	if id == "" {
		return nil, fmt.Errorf("no header with the id of %s", e.ID)
	}
	e.header, e.own = id, own
	e.seat = &seat{
		topic: r.Topic, wanted: topicOf(l.prefix, e.kind()), partition: r.Partition, partitions: l.tail.Partitions(), offset: r.Offset, key: string(r.Key),
	}
	return &e, nil
}

// complaint is what is wrong with the place of the event, "" where nothing is.
func (s *seat) complaint(e *event) string {
	key := e.key()
	if e.UID == "" {
		key = "/" + e.op()
	}
	want := kgo.StickyKeyPartitioner(nil).ForTopic(s.topic).Partition(&kgo.Record{Key: []byte(key)}, s.partitions)
	if e.UID != "" && e.op() == "gap" { // it is in the object's partition, and leaves its key alone
		key = "/gap/" + e.kind() + "/" + key
	}
	switch deleted := e.op() == "deleted"; {
	case s.topic != s.wanted:
		return fmt.Sprintf("the topic is %s, want %s", s.topic, s.wanted)
	case s.key != key:
		return fmt.Sprintf("the key is %s, want %s", s.key, key)
	case s.partition != want && e.op() != "resolved":
		return fmt.Sprintf("the partition is %d, and other producers take %d for the key", s.partition, want)
	case deleted && s.tombstones != 1:
		return fmt.Sprintf("%d tombstones behind the delete", s.tombstones)
	}
	return ""
}
