package kafka

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
)

func transactional(t *testing.T, cluster *kafkatest.Cluster, topics int) Options {
	options := testOptions(t, cluster, topics)
	options.Delivery, options.TransactionalID = Transactional, options.Topics[0]
	return options
}

// TestTransactionThatTimesOut is one that the coordinator ended before it was committed.
func TestTransactionThatTimesOut(t *testing.T) {
	cluster := broker.Get(t)
	kafkatest.RequireReal(t)
	options := transactional(t, cluster, 1)
	s := newTestSink(t, options)
	s.tuning.transaction = 4 * time.Second // long enough for a Write on a busy machine
	open(t, s, "")
	mark := mustWrite(t, s, messagesOf(options.Topics[0], 1))
	messages := messagesOf(options.Topics[0], 10)[1:]

	leaveOpen(t, s, messages)
	s.opened = true
	cluster.AwaitTransactions(t, options.Topics[0])
	_, err := s.Write(t.Context(), messages)
	expectReopen(t, err)
	if _, left, err := rewrite(t, s, mark, messages); err != nil || len(left) != len(messages) {
		t.Fatalf("%d of %d messages were found in an aborted transaction, or %v", len(messages)-len(left), len(messages), err)
	}
	sameSet(t, "topic", storedIDs(t, cluster, options.Topics...), idsOf(messagesOf("", 10)))
}

// TestTailOfEveryKind has what a tail can hold: committed, aborted and open transactions of ours and of others, records
// without an id, control batches and batches that compaction has emptied. Java's consumer is the judge.
func TestTailOfEveryKind(t *testing.T) {
	cluster := broker.Get(t)
	kafkatest.RequireReal(t)
	options := transactional(t, cluster, 1)
	options.Partitions, options.Cleanup = 1, "compact"
	options.Configs = kafkatest.CompactedQuickly()
	delete(options.Configs, "cleanup.policy")
	topic := options.Topics[0]
	s := newTestSink(t, options)
	s.tuning.records = 4
	open(t, s, "")
	mark := mustWrite(t, s, nil)
	mustWrite(t, s, messagesOf(topic, 40)) // of ten keys: compaction empties most batches
	aborted := messagesOf(topic, 60)[40:]
	for i := range aborted {
		aborted[i].Key = fmt.Append(aborted[i].Key, i)
	}
	leaveOpen(t, s, aborted)
	next := newTestSink(t, options) // aborts it
	open(t, next, "")
	mustWrite(t, next, messagesOf(topic, 63)[60:])
	cluster.AwaitCompaction(t, topic)
	leaveOpen(t, next, messagesOf(topic, 66)[63:])

	last := newTestSink(t, options)
	got := open(t, last, mark)
	cluster.AwaitTransactions(t, topic)
	var want []string
	for _, r := range cluster.Consume(t, topic, kafkatest.JudgeOptions{ReadCommitted: true}) {
		for _, h := range r.Headers {
			if h.Key == sink.HeaderID {
				want = append(want, string(h.Value))
			}
		}
	}
	if !slices.Equal(got, want) || len(want) == 0 || len(want) >= 43 {
		t.Errorf("the tail holds %q,\nand Java's consumer reads %q", got, want)
	}
}

// leaveOpen writes the messages into a transaction that nobody ends.
func leaveOpen(t *testing.T, s *Sink, messages []sink.Message) {
	t.Helper()
	p, rejected, err := s.sender.plan(t.Context(), messages)
	if err != nil || rejected != nil {
		t.Fatal(rejected, err)
	}
	partitions := map[string][]int32{}
	for _, to := range p.touched {
		partitions[to.topic.name] = append(partitions[to.topic.name], to.number)
	}
	must(t, s.persist(t.Context(), "begin", func(ctx context.Context) error { return s.cluster.AddPartitions(ctx, s.right.tx(), partitions) }))
	must(t, s.sender.send(t.Context(), p))
	s.opened = false
}

// TestStrangersTransactionHidesNothing: our records after a transaction that somebody else leaves open are found when
// its timeout has ended it.
func TestStrangersTransactionHidesNothing(t *testing.T) {
	cluster := broker.Get(t)
	options := transactional(t, cluster, 1)
	options.Partitions = 1
	stranger := options
	stranger.TransactionalID += "-stranger"
	other := newTestSink(t, stranger)
	other.tuning.transaction = 2 * time.Second
	open(t, other, "")
	s := newTestSink(t, options)
	open(t, s, "")
	mark := mustWrite(t, s, nil)
	foreign := message(options.Topics[0], "k", "")
	leaveOpen(t, other, []sink.Message{foreign})
	messages := messagesOf(options.Topics[0], 5)
	mustWrite(t, s, messages)
	sameSet(t, "tail", open(t, newTestSink(t, options), mark), idsOf(messages))
}
