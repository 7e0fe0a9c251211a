package kafka

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
)

// limit is far more than anything takes here on a busy machine.
const limit = 2 * time.Minute

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func testOptions(t *testing.T, cluster *kafkatest.Cluster, topics int) Options {
	t.Helper()
	options := Options{
		Wire: wire.Options{Brokers: cluster.Brokers()}, Topics: newTopics(topics), Create: true, Partitions: 2, Compression: "none",
	}
	if topics > 0 {
		options.TransactionalID = options.Topics[0]
	}
	return options
}

func message(topic, key, id string) sink.Message {
	return sink.Message{
		ID: id, Op: "updated", ResourceVersion: "7", Destination: topic, Key: []byte(key), Value: []byte("{}"), Time: time.Now(),
	}
}

// messagesOf makes n messages of some keys.
func messagesOf(topic string, n int) []sink.Message {
	batch := make([]sink.Message, n)
	for i := range batch {
		batch[i] = message(topic, fmt.Sprint("key-", i%10), fmt.Sprint("id-", i))
	}
	return batch
}

func idsOf(messages []sink.Message) []string {
	all := make([]string, len(messages))
	for i := range messages {
		all[i] = messages[i].ID
	}
	return all
}

func storedIDs(t *testing.T, cluster *kafkatest.Cluster, topics ...string) []string {
	t.Helper()
	var all []string
	for _, m := range stored(t, cluster, topics...) {
		all = append(all, m.ID)
	}
	return all
}

func sameSet(t *testing.T, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %.500q\nwant %.500q", what, got, want)
	}
}

func mustWrite(t *testing.T, s *Sink, messages []sink.Message) sink.Mark {
	t.Helper()
	mark, err := s.Write(t.Context(), messages)
	must(t, err)
	return mark
}

// rewrite does what the pipeline does after an error that only Open answers.
func rewrite(t *testing.T, s *Sink, mark sink.Mark, messages []sink.Message) (sink.Mark, []sink.Message, error) {
	t.Helper()
	known := open(t, s, mark)
	left := slices.DeleteFunc(slices.Clone(messages), func(m sink.Message) bool { return slices.Contains(known, m.ID) })
	mark, err := s.Write(t.Context(), left)
	return mark, left, err
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
