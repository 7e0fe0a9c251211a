package kafka

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
)

func TestJavaPartitionerAgrees(t *testing.T) {
	cluster := broker.Get(t)
	kafkatest.RequireReal(t)
	keys := [][]byte{{}, []byte("/"), {0}, {255, 254, 0}, []byte("kube-system/")}
	for i := len(keys); i < 10_000; i++ {
		switch i % 3 {
		case 0:
			keys = append(keys, fmt.Appendf(nil, "shop/web-%d", i))
		case 1:
			keys = append(keys, fmt.Appendf(nil, "ñs%c/%c☃", rune(0x400+i%500), rune(0x4e00+i)))
		case 2:
			keys = append(keys, []byte{byte(i), byte(i >> 8), 0, 0xff, byte(i * 7)})
		}
	}
	for _, n := range []int{12, 7} {
		for i, want := range cluster.Partition(t, keys, n) {
			if got := batch.Partition(keys[i], n); int(got) != want {
				t.Fatalf("key %q of %d partitions: %d, and Java has %d", keys[i], n, got, want)
			}
		}
	}
}

// TestJavaReadsEveryCodec has Java's consumer for a judge. Each codec writes to the same topic.
func TestJavaReadsEveryCodec(t *testing.T) {
	cluster := broker.Get(t)
	kafkatest.RequireReal(t)
	options := testOptions(t, cluster, 1)
	written := map[string]sink.Message{}
	for _, name := range batch.Codecs() {
		options.Compression = name
		s := opened(t, options)
		messages := messagesOf(options.Topics[0], 300)
		for i := range messages {
			messages[i].ID = fmt.Sprint(name, i)
			messages[i].Value = []byte(strings.Repeat(`{"number":1},`, i))
			messages[i].Headers = []sink.Header{{Name: "x", Value: name}}
			written[messages[i].ID] = messages[i]
		}
		messages[7].Value = nil
		written[messages[7].ID] = messages[7]
		mustWrite(t, s, messages)
	}
	for _, r := range cluster.Consume(t, options.Topics[0], kafkatest.JudgeOptions{ReadCommitted: true}) {
		id := string(r.Headers[0].Value)
		m, found := written[id]
		delete(written, id)
		if !found || string(r.Key) != string(m.Key) || string(r.Value) != string(m.Value) || (r.Value == nil) != (m.Value == nil) ||
			r.Timestamp.UnixMilli() != m.Time.UnixMilli() || len(r.Headers) != 4 || r.Headers[3].Key != "x" {
			t.Fatalf("Java reads %.200v, written was %.200v", r, m)
		}
	}
	if len(written) > 0 {
		t.Errorf("Java does not read %d records", len(written))
	}
}
