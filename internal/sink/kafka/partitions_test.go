package kafka

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/sink"
	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// TestI3KeysStayWhenPartitionsAreAdded, while the sink is closed, while it runs, and where it is opened again: the
// states of an object and its tombstone are in one partition. It tells once that there are more.
func TestI3KeysStayWhenPartitionsAreAdded(t *testing.T) {
	cluster := broker.Get(t)
	kafkatest.RequireReal(t)
	eachDelivery(t, 1, func(t *testing.T, options Options) {
		var told []string
		options.Notice = func(text string) { told = append(told, text) }
		topic := options.Topics[0]
		write := func(s *Sink, version string) (mark sink.Mark) {
			messages := messagesOf(topic, 100)
			for i := range messages {
				messages[i].Key, messages[i].ID = fmt.Append(nil, "key-", i), fmt.Sprint("id-", i, "-", version)
			}
			return mustWrite(t, s, messages)
		}
		s := opened(t, options)
		write(s, "1")
		cluster.AddPartitions(t, topic, 5)
		mark := write(s, "2")
		for range 2 {
			open(t, s, mark)
			expectTold(t, told, "first 2 of the 5 partitions of topic "+topic)
		}
		write(s, "3")
		cluster.AddPartitions(t, topic, 7)
		told = nil
		next := newTestSink(t, options)
		if known := open(t, next, mark); len(known) != 100 {
			t.Errorf("%d records are behind the mark", len(known))
		}
		expectTold(t, told, "first 2 of the 7 partitions of topic "+topic)
		write(next, "4")
		place := map[string]int{}
		for _, r := range committed(t, cluster, topic) {
			if before, found := place[string(r.Key)]; found && before != int(r.Partition) {
				t.Fatalf("%s was in partition %d, and %s is in %d", r.Key, before, r.Headers[0].Value, r.Partition)
			}
			place[string(r.Key)] = int(r.Partition)
		}
		cluster.DeleteTopic(t, topic) // whoever wants more partitions makes the topic again
		cluster.CreateTopic(t, topic, kafkatest.Topic{Partitions: 7})
		again := newTestSink(t, options)
		if _, err := sinktest.Open(t.Context(), again, mark); err == nil || len(again.topics[topic].partitions) != 7 {
			t.Errorf("a topic that was made again: %v", err)
		}
	})
}

func expectTold(t *testing.T, told []string, want string) {
	t.Helper()
	if len(told) != 1 || !strings.Contains(told[0], want) {
		t.Errorf("was told %q, want once %q", told, want)
	}
}
