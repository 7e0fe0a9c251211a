package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// told is what a topic of one partition has told so far, by the key of a change: the version of the object, or, as the
// answer to a delete has no version, the uid of what was deleted.
type told struct {
	client *kgo.Client
	topic  string
	done   chan struct{}

	mu     sync.Mutex
	counts map[string]int
	newest map[string]int // version of each uid
	late   int            // first records of a version, behind one of a newer version
	last   time.Time      // of the last record
	err    error
}

// follow makes the topic and reads it.
func follow(ctx context.Context, brokers []string, topic string) (*told, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic))
	if err != nil {
		return nil, fmt.Errorf("connect to Kafka: %w", err)
	}
	request := kmsg.NewPtrCreateTopicsRequest()
	one := kmsg.NewCreateTopicsRequestTopic()
	one.Topic, one.NumPartitions, one.ReplicationFactor = topic, 1, 1
	request.Topics, request.TimeoutMillis = append(request.Topics, one), 30_000
	response, err := request.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(response.Topics[0].ErrorCode)
	}
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("create topic %s: %w", topic, err)
	}
	t := &told{
		client: client, topic: topic, done: make(chan struct{}), last: time.Now(),
		counts: map[string]int{}, newest: map[string]int{},
	}
	go t.read()
	return t, nil
}

func (t *told) read() {
	defer close(t.done)
	for {
		fetched := t.client.PollFetches(context.Background())
		if fetched.IsClientClosed() {
			return
		}
		t.mu.Lock()
		fetched.EachRecord(func(r *kgo.Record) {
			if err := t.note(r.Value); err != nil {
				t.err = err
			}
		})
		t.mu.Unlock()
	}
}

// record is what both programs write of a change.
type record struct {
	Type string

	UID, ResourceVersion string // the exporter's

	Object struct {
		Metadata struct{ UID, ResourceVersion string }
	} // the Collector's
}

func (t *told) note(value []byte) error {
	if len(value) == 0 {
		return nil // a tombstone
	}
	var r record
	if err := json.Unmarshal(value, &r); err != nil {
		return fmt.Errorf("read a record of %s: %w", t.topic, err)
	}
	if r.UID == "" {
		r.UID, r.ResourceVersion = r.Object.Metadata.UID, r.Object.Metadata.ResourceVersion
	}
	if r.UID == "" {
		return nil // the frame of a snapshot
	}
	t.last = time.Now()
	key := r.ResourceVersion
	if strings.EqualFold(strings.TrimPrefix(r.Type, "dev.kubecdc."), "deleted") {
		key = deleteOf(r.UID)
	}
	t.counts[key]++
	version, err := strconv.Atoi(r.ResourceVersion)
	if err != nil {
		return fmt.Errorf("read a version in %s: %w", t.topic, err)
	}
	if version < t.newest[r.UID] && t.counts[key] == 1 {
		t.late++
	}
	t.newest[r.UID] = max(t.newest[r.UID], version)
	return nil
}

func (t *told) count(key string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[key]
}

// changes is how many different ones were told, and when the last record came.
func (t *told) changes() (int, time.Time, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.counts), t.last, t.err
}

// repeated is how many records tell what another had told, and how many come behind a newer one.
func (t *told) repeated() (twice, late int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, count := range t.counts {
		twice += count - 1
	}
	return twice, t.late
}

// size is the topic's on the disk of the broker.
func (t *told) size(ctx context.Context) (bytes int64, err error) {
	request := kmsg.NewPtrDescribeLogDirsRequest()
	one := kmsg.NewDescribeLogDirsRequestTopic()
	one.Topic, one.Partitions = t.topic, []int32{0}
	request.Topics = append(request.Topics, one)
	response, err := request.RequestWith(ctx, t.client)
	if err != nil {
		return 0, fmt.Errorf("ask for the size of %s: %w", t.topic, err)
	}
	for _, dir := range response.Dirs {
		for _, topic := range dir.Topics {
			for _, p := range topic.Partitions {
				bytes += p.Size
			}
		}
	}
	return bytes, nil
}

func (t *told) close() {
	t.client.Close()
	<-t.done
}
