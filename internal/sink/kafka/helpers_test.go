package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

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

// committed are the records of the topic, when its transactions have ended.
func committed(t *testing.T, cluster *kafkatest.Cluster, topic string) []kafkatest.Record {
	t.Helper()
	cluster.AwaitTransactions(t, topic)
	return cluster.ConsumeFast(t, topic, kafkatest.JudgeOptions{ReadCommitted: true})
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

// opened is a new sink that is open at the mark, or for the first time.
func opened(t *testing.T, options Options, at ...sink.Mark) *Sink {
	t.Helper()
	s := newTestSink(t, options)
	open(t, s, append(at, "")[0])
	return s
}

// eachDelivery tests with options for a sink of so many topics of the shared broker.
func eachDelivery(t *testing.T, topics int, test func(t *testing.T, options Options)) {
	for _, delivery := range []string{Idempotent, Transactional} {
		t.Run(delivery, func(t *testing.T) {
			options := testOptions(t, broker.Get(t), topics)
			options.Delivery = delivery
			test(t, options)
		})
	}
}

func newFake(t *testing.T, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	fake, err := kfake.NewCluster(options...)
	must(t, err)
	t.Cleanup(fake.Close)
	return fake
}

// wireAs is the way of a user of the secured broker.
func wireAs(cluster *kafkatest.Cluster, user string) wire.Options {
	return wire.Options{
		Brokers: cluster.BrokersAt(kafkatest.SASL), SASL: &wire.SASL{Mechanism: wire.Plain, User: user, Password: secured.Options.Users[user]},
	}
}

// expectReopen wants an error that Open answers.
func expectReopen(t *testing.T, err error) {
	t.Helper()
	var permanent *sink.PermanentError
	if err == nil || errors.As(err, &permanent) {
		t.Fatalf("got %v, want an error that Open answers", err)
	}
}

// expectFenced wants an error that says that another exporter has the right now, with the words.
func expectFenced(t *testing.T, err error, words ...string) {
	t.Helper()
	var permanent *sink.PermanentError
	if !errors.As(err, &permanent) || !permanent.Fenced {
		t.Fatalf("got %v, want that it was taken over", err)
	}
	contains(t, "error", err.Error(), words)
}
