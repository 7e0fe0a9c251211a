package kafka

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ConsumeFast is Consume with franz-go's decoder, without a JVM.
func (c *Cluster) ConsumeFast(tb testing.TB, topic string, options JudgeOptions) []Record {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), judgeLimit)
	defer cancel()
	r := c.reader(topic, options)
	if err := r.readAll(ctx); err != nil {
		tb.Fatalf("consume %s: %v", topic, err)
	}
	sortRecords(r.records)
	return r.records
}

// AwaitTransactions waits until no transaction is open in a topic, so that
// read_committed shows all of it. The coordinator writes the markers of a
// committed transaction after it has answered, seconds later if it was killed.
func (c *Cluster) AwaitTransactions(tb testing.TB, topic string) {
	tb.Helper()
	c.await(tb, "wait for transactions in "+topic, func(ctx context.Context) error {
		stable, err := offsets(c.admin.ListCommittedOffsets(ctx, topic))
		if err != nil {
			return err
		}
		high, err := offsets(c.admin.ListEndOffsets(ctx, topic))
		if err != nil {
			return err
		}
		for p := range high {
			if stable[p] < high[p] {
				return fmt.Errorf("partition %d: a transaction is open at offset %d of %d", p, stable[p], high[p])
			}
		}
		return nil
	})
}

// offsets are those of the one topic that was asked for, by partition.
func offsets(listed kadm.ListedOffsets, err error) (map[int32]int64, error) {
	all := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) { all[o.Partition] = o.Offset })
	return all, cmp.Or(err, listed.Error())
}

// reader reads one topic from its start to the end it has when it begins.
type reader struct {
	*Cluster
	topic     string
	level     int8 // of isolation, as in requests
	isolation kgo.IsolationLevel
	records   []Record
}

func (c *Cluster) reader(topic string, options JudgeOptions) *reader {
	if options.ReadCommitted {
		return &reader{Cluster: c, topic: topic, level: 1, isolation: kgo.ReadCommitted()}
	}
	return &reader{Cluster: c, topic: topic, isolation: kgo.ReadUncommitted()}
}

func (r *reader) readAll(ctx context.Context) error {
	var from, to map[int32]int64
	err := until(ctx, func(ctx context.Context) (err error) {
		if from, err = offsets(r.admin.ListStartOffsets(ctx, r.topic)); err == nil {
			to, err = r.end(ctx)
		}
		return err
	})
	if err != nil {
		return err
	}
	for p := range to {
		if err := r.readPartition(ctx, p, from[p], to[p]); err != nil {
			return fmt.Errorf("partition %d: %w", p, err)
		}
	}
	return nil
}

// end is where what the isolation shows of each partition ends.
func (r *reader) end(ctx context.Context) (map[int32]int64, error) {
	if r.level == 1 {
		return offsets(r.admin.ListCommittedOffsets(ctx, r.topic))
	}
	return offsets(r.admin.ListEndOffsets(ctx, r.topic))
}

func (r *reader) readPartition(ctx context.Context, partition int32, next, to int64) error {
	for next < to {
		err := until(ctx, func(ctx context.Context) error {
			batches, err := r.fetch(ctx, partition, next)
			if err != nil {
				return err
			}
			options := kgo.ProcessFetchPartitionOpts{Offset: next, IsolationLevel: r.isolation, Topic: r.topic, Partition: partition}
			decoded, after := kgo.ProcessFetchPartition(options, batches, kgo.DefaultDecompressor(), nil)
			if decoded.Err != nil {
				return permanent{fmt.Errorf("decode batches at offset %d: %w", next, decoded.Err)}
			}
			for _, record := range decoded.Records {
				if record.Offset < to {
					r.records = append(r.records, fromFranz(record))
				}
			}
			next = after
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// fetch asks the partition's leader for some batches.
func (r *reader) fetch(ctx context.Context, partition int32, offset int64) (*kmsg.FetchResponseTopicPartition, error) {
	about, err := describe(ctx, r.client, r.topic)
	if err != nil {
		return nil, err
	}
	request := kmsg.NewPtrFetchRequest()
	request.MaxWaitMillis, request.MinBytes, request.MaxBytes, request.IsolationLevel = 500, 1, 16<<20, r.level
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = r.topic, about.TopicID
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, 16<<20
	topic.Partitions = append(topic.Partitions, p)
	request.Topics = append(request.Topics, topic)
	for _, known := range about.Partitions {
		if known.Partition != partition {
			continue
		}
		response, err := r.client.Broker(int(known.Leader)).Request(ctx, request)
		if err != nil {
			return nil, err
		}
		return onlyPartition(response.(*kmsg.FetchResponse))
	}
	return nil, fmt.Errorf("metadata has no partition %d", partition)
}

func onlyPartition(response *kmsg.FetchResponse) (*kmsg.FetchResponseTopicPartition, error) {
	if err := kerr.ErrorForCode(response.ErrorCode); err != nil {
		return nil, err
	}
	if len(response.Topics) != 1 || len(response.Topics[0].Partitions) != 1 {
		return nil, fmt.Errorf("fetch: %d topics in the answer, want one with one partition", len(response.Topics))
	}
	p := &response.Topics[0].Partitions[0]
	return p, kerr.ErrorForCode(p.ErrorCode)
}

func fromFranz(r *kgo.Record) Record {
	record := Record{
		Topic: r.Topic, Partition: int(r.Partition), Offset: r.Offset, Timestamp: time.UnixMilli(r.Timestamp.UnixMilli()),
		Key: r.Key, Value: r.Value,
	}
	for _, h := range r.Headers {
		record.Headers = append(record.Headers, Header(h))
	}
	return record
}
