package kafka

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
)

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
