package kafka

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// odd are bytes that a judge may not mix up.
func odd() [][]byte {
	return [][]byte{nil, {}, []byte("-"), []byte("a\tb\n"), {0, 0xff, 0xfe, '\r'}, []byte("{\"ü\":1}"), []byte("end\n")}
}

func TestJudgesAgree(t *testing.T) {
	RequireReal(t)
	c := shared.Get(t)
	c.CreateTopic(t, "judges", Topic{Partitions: 2})
	want := map[bool][]Record{}
	note := func(committed bool, written []Record) {
		want[false] = append(want[false], written...)
		if committed {
			want[true] = append(want[true], written...)
		}
	}
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		note(true, write(t, c, kgo.ProducerBatchCompression(codec)))
	}
	for i, commit := range []bool{true, false, true, false} { // the log ends with the marker of an abort
		note(commit, writeTransaction(t, c, fmt.Sprintf("tx-%d", i), commit))
	}
	c.AwaitTransactions(t, "judges")
	for _, readCommitted := range []bool{false, true} {
		sortRecords(want[readCommitted])
		options := JudgeOptions{ReadCommitted: readCommitted}
		compare(t, fmt.Sprintf("Java, %+v", options), c.Consume(t, "judges", options), want[readCommitted])
		compare(t, fmt.Sprintf("franz-go, %+v", options), c.ConsumeFast(t, "judges", options), want[readCommitted])
	}
}

// newProducer notices within seconds that a broker is silent.
func newProducer(t *testing.T, c *Cluster, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(c.Brokers()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMaxAge(time.Second), kgo.MetadataMinAge(pollInterval),
		kgo.ProduceRequestTimeout(time.Second), kgo.RequestTimeoutOverhead(2*time.Second))...)
	must(t, err)
	t.Cleanup(client.Close)
	return client
}

func write(t *testing.T, c *Cluster, options ...kgo.Opt) []Record {
	t.Helper()
	return produce(t, newProducer(t, c, append(options, kgo.DefaultProduceTopic("judges"))...))
}

func writeTransaction(t *testing.T, c *Cluster, id string, commit bool) []Record {
	t.Helper()
	client := newProducer(t, c, kgo.TransactionalID(id), kgo.DefaultProduceTopic("judges"))
	must(t, client.BeginTransaction())
	written := produce(t, client)
	must(t, client.EndTransaction(t.Context(), kgo.TransactionEndTry(commit)))
	return written
}

// produce writes odd keys, values and headers, and returns them as the broker placed them.
func produce(t *testing.T, client *kgo.Client) []Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var records []*kgo.Record
	for i, key := range odd() {
		value := odd()[(i+3)%len(odd())]
		record := &kgo.Record{Key: key, Value: value, Partition: int32(i % 2), Timestamp: time.UnixMilli(1_700_000_000_000 + int64(i))}
		for j := range i {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: fmt.Sprintf("h%d", j/2), Value: odd()[j]})
		}
		records = append(records, record)
	}
	must(t, client.ProduceSync(ctx, records...).FirstErr())
	var written []Record
	for _, r := range records {
		written = append(written, fromFranz(r))
	}
	return written
}

func compare(t *testing.T, who string, got, want []Record) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %d records, want %d", who, len(got), len(want))
		return
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("%s: record %d:\n got %#v\nwant %#v", who, i, got[i], want[i])
			return
		}
	}
}
