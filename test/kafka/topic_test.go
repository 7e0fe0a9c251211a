package kafka

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestCompactionKeepsTheLastOfEachKey(t *testing.T) {
	RequireReal(t)
	c := shared.Get(t)
	c.CreateTopic(t, "compacted", Topic{Partitions: 2, Config: CompactedQuickly()})
	client := newProducer(t, c, kgo.DefaultProduceTopic("compacted"))
	for round := range 3 {
		for key := range 6 {
			record := &kgo.Record{Key: fmt.Append(nil, key), Value: fmt.Append(nil, round), Partition: int32(key % 2)}
			if round == 2 && key < 2 {
				record.Value = nil // a tombstone
			}
			if err := client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	left := c.AwaitCompaction(t, "compacted")
	for i, want := range []string{"2", "4", "3", "5"} {
		if len(left) != 4 || string(left[i].Key) != want || string(left[i].Value) != "2" {
			t.Fatalf("compacted topic: got %v, want the last values of 2, 4, 3 and 5", left)
		}
	}
}

func TestTopicsAreAlteredCutAndDeleted(t *testing.T) {
	RequireReal(t)
	c := shared.Get(t)
	c.CreateTopic(t, "altered", Topic{})
	client := newProducer(t, c, kgo.DefaultProduceTopic("altered"), kgo.ProducerBatchCompression(kgo.NoCompression()))
	put := func(value []byte) error {
		return client.ProduceSync(t.Context(), &kgo.Record{Value: value}).FirstErr()
	}
	for range 3 {
		if err := put([]byte("value")); err != nil {
			t.Fatal(err)
		}
	}
	c.DeleteRecords(t, "altered", 0, 2)
	if got := c.Consume(t, "altered", JudgeOptions{}); len(got) != 1 || got[0].Offset != 2 {
		t.Errorf("after DeleteRecords: got %v, want the record at offset 2", got)
	}

	c.AlterTopicConfig(t, "altered", map[string]string{"max.message.bytes": "1000"})
	if got := c.TopicConfig(t, "altered")["max.message.bytes"]; got != "1000" {
		t.Errorf("max.message.bytes: got %s, want 1000", got)
	}
	if err := put(make([]byte, 2000)); !errors.Is(err, kerr.MessageTooLarge) {
		t.Errorf("a large record: got %v, want %v", err, kerr.MessageTooLarge)
	}
	c.AlterTopicConfig(t, "altered", map[string]string{"max.message.bytes": ""})
	if got := c.TopicConfig(t, "altered")["max.message.bytes"]; got != "1048588" {
		t.Errorf("max.message.bytes: got %s, want the default", got)
	}

	c.DeleteTopic(t, "altered")
	c.CreateTopic(t, "altered", Topic{Partitions: 2})
	if got := c.ConsumeFast(t, "altered", JudgeOptions{}); len(got) != 0 {
		t.Errorf("topic made again: got %v, want nothing", got)
	}
}

// TestWithoutJava holds on any machine.
func TestWithoutJava(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CI", "")
	t.Setenv("KUBECDC_REQUIRE_KAFKA", "")
	c := Start(t, Options{})
	if c.Real() {
		t.Fatal("a cluster without java calls itself real")
	}
	c.CreateTopic(t, "fake", Topic{Partitions: 2})
	client := newProducer(t, c, kgo.DefaultProduceTopic("fake"))
	now := time.UnixMilli(1_700_000_000_123)
	if err := client.ProduceSync(t.Context(), &kgo.Record{Partition: 1, Value: []byte("v"), Timestamp: now}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	compare(t, "kfake", c.Consume(t, "fake", JudgeOptions{ReadCommitted: true}), []Record{{Topic: "fake", Partition: 1, Timestamp: now, Value: []byte("v")}})

	if _, err := start(t.Context(), Options{ACLs: true}); err == nil {
		t.Error("ACLs without java: got a cluster, want an error")
	}
	t.Setenv("KUBECDC_REQUIRE_KAFKA", "1")
	if _, err := start(t.Context(), Options{}); err == nil {
		t.Error("required, without java: got a cluster, want an error")
	}
}
