package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
)

// TestI3DeleteAndTombstoneAreOneBatch cuts batches as small as they get, and looks where.
func TestI3DeleteAndTombstoneAreOneBatch(t *testing.T) {
	cluster := broker.Get(t)
	options := testOptions(t, cluster, 1)
	s := newTestSink(t, options)
	s.tuning.records = 3
	open(t, s, "")
	var messages []sink.Message
	for i := range 40 {
		m := message(options.Topics[0], fmt.Sprint("key-", i%7), fmt.Sprint("id-", i))
		messages = append(messages, m)
		if i%3 == 0 {
			m.Value = nil
			messages = append(messages, m)
		}
	}
	mustWrite(t, s, messages)
	batches := 0
	for number := range int32(2) {
		result, err := s.cluster.Fetch(t.Context(), wire.FetchRequest{Topic: options.Topics[0], Partition: number})
		must(t, err)
		last := ""
		for b, err := range batch.All(result.RecordBatches) {
			must(t, err)
			if b.IsControl() { // of a fence
				continue
			}
			batches++
			first := true
			must(t, batch.NewDecoder(1<<20).Each(b, func(e *batch.Entry) error {
				id, _ := e.Header(sink.HeaderID)
				if first && string(id) == last {
					t.Errorf("%s is split over two batches", id)
				}
				first, last = false, string(id)
				return nil
			}))
			if b.NumRecords > 3 {
				t.Errorf("a batch of %d records", b.NumRecords)
			}
		}
	}
	if batches < 15 {
		t.Errorf("%d batches only", batches)
	}
}

// TestI4RefusedByTheBroker has a record that only the broker can judge, while other partitions are on their way.
func TestI4RefusedByTheBroker(t *testing.T) {
	cluster := broker.Get(t)
	kafkatest.RequireReal(t) // kfake takes any time
	eachDelivery(t, 2, func(t *testing.T, options Options) {
		s := opened(t, options)
		mark := mustWrite(t, s, nil)
		messages := messagesOf(options.Topics[0], 30)
		messages[13].Time = time.Now().Add(48 * time.Hour)
		for i := range messages {
			messages[i].Destination = options.Topics[i%2]
		}
		_, err := s.Write(t.Context(), messages)
		var rejected *sink.RejectedError
		if err == nil || errors.As(err, &rejected) {
			t.Fatalf("got %v, want an error that Open answers", err)
		}
		mark, left, err := rewrite(t, s, mark, messages)
		if !errors.As(err, &rejected) || rejected.Reason != "invalid" || left[rejected.Index].ID != "id-13" || mark == "" ||
			!strings.Contains(err.Error(), "raise message.timestamp.before.max.ms") {
			t.Fatalf("got %v of %q, want a rejection of id-13", err, idsOf(left))
		}
		known := storedIDs(t, cluster, options.Topics...)
		for _, m := range left[:rejected.Index] {
			if !slices.Contains(known, m.ID) {
				t.Errorf("%s is before the rejected message and is not durable", m.ID)
			}
		}
		for _, m := range left[rejected.Index:] {
			if slices.Contains(known, m.ID) {
				t.Errorf("%s is behind the rejected message and was written by this Write", m.ID)
			}
		}
		mustWrite(t, s, left[rejected.Index+1:])
		want := slices.Delete(idsOf(messages), 13, 14)
		sameSet(t, "topics", storedIDs(t, cluster, options.Topics...), want)
		if ids := open(t, s, mark); len(ids) != len(left)-rejected.Index-1 {
			t.Errorf("behind the rejection's mark are %q", ids)
		}
	})
}

// TestI4LimitThatIsLowered finds out about the limit by the broker's refusal, and cuts smaller.
func TestI4LimitThatIsLowered(t *testing.T) {
	eachDelivery(t, 1, limitIsLowered)
}

func limitIsLowered(t *testing.T, options Options) {
	cluster := broker.Get(t)
	kafkatest.RequireReal(t)
	s := opened(t, options)
	mark := mustWrite(t, s, nil)
	cluster.AlterTopicConfig(t, options.Topics[0], map[string]string{"max.message.bytes": "3000"})
	messages := messagesOf(options.Topics[0], 60)
	messages[20].Value = []byte(strings.Repeat("x", 5000))
	for try := 0; len(messages) > 0; try++ {
		var rejected *sink.RejectedError
		next, err := s.Write(t.Context(), messages)
		switch {
		case err == nil:
			messages = nil
		case errors.As(err, &rejected):
			if messages[rejected.Index].ID != "id-20" || rejected.Reason != "too_large" || !strings.Contains(err.Error(), "max.message.bytes") {
				t.Fatalf("got %v of %s", err, messages[rejected.Index].ID)
			}
			messages, mark = messages[rejected.Index+1:], next
		case try > 2:
			t.Fatal(err)
		default:
			known := open(t, s, mark)
			messages = slices.DeleteFunc(messages, func(m sink.Message) bool { return slices.Contains(known, m.ID) })
		}
	}
	sameSet(t, "topic", storedIDs(t, cluster, options.Topics...), slices.Delete(idsOf(messagesOf("", 60)), 20, 21))
	if limit := s.topics[options.Topics[0]].limit.Load(); limit >= 8000 {
		t.Errorf("a batch of %d bytes would be tried again", limit)
	}
}

// TestRaisedLimitIsNoticed without opening the sink again: what was rejected fits now.
func TestRaisedLimitIsNoticed(t *testing.T) {
	cluster := broker.Get(t)
	kafkatest.RequireReal(t)
	options := testOptions(t, cluster, 1)
	options.Configs = map[string]string{"max.message.bytes": "3000"}
	s := opened(t, options)
	messages := messagesOf(options.Topics[0], 3)
	messages[1].Value = []byte(strings.Repeat("x", 5000))
	var rejected *sink.RejectedError
	if _, err := s.Write(t.Context(), messages); !errors.As(err, &rejected) || rejected.Index != 1 || rejected.Reason != "too_large" {
		t.Fatalf("got %v, want message 1 to be too large", err)
	}
	cluster.AlterTopicConfig(t, options.Topics[0], map[string]string{"max.message.bytes": "9000"})
	mustWrite(t, s, messages[1:])
	sameSet(t, "topic", storedIDs(t, cluster, options.Topics...), idsOf(messages))
}

// TestTopicsThatTheMarkDoesNotName are read from their start: one that is new to the configuration, and records of a
// crash may be in it already.
func TestTopicsThatTheMarkDoesNotName(t *testing.T) {
	cluster := broker.Get(t)
	options := testOptions(t, cluster, 2)
	before := options
	before.Topics = options.Topics[:1]
	s := opened(t, before)
	mark := mustWrite(t, s, nil)
	messages := messagesOf(options.Topics[1], 20)
	messages[3].Destination = "no topic/at all"
	_, err := s.Write(t.Context(), messages) // to one that is not listed
	var rejected *sink.RejectedError
	if !errors.As(err, &rejected) || rejected.Index != 3 || rejected.Reason != "invalid" {
		t.Fatalf("got %v, want a rejection of message 3", err)
	}
	messages = slices.Delete(messages, 3, 4)
	later := mustWrite(t, s, messages[3:])
	sameSet(t, "behind a mark without the topic", open(t, newTestSink(t, options), mark), idsOf(messages))
	sameSet(t, "behind a mark with the topic", open(t, newTestSink(t, options), later), nil)
	cluster.DeleteTopic(t, options.Topics[1])
	sameSet(t, "with a topic that nobody needs any more", open(t, newTestSink(t, before), later), nil)
}

// TestMessageWithoutAKey goes to a compacted topic, too, which refuses records whose key is null.
func TestMessageWithoutAKey(t *testing.T) {
	cluster := broker.Get(t)
	options := testOptions(t, cluster, 1)
	options.Cleanup = "compact,delete"
	s := opened(t, options)
	without := message(options.Topics[0], "", "id-0")
	without.Key = nil
	mustWrite(t, s, []sink.Message{without, message(options.Topics[0], "", "id-1")})
	if got := storedIDs(t, cluster, options.Topics[0]); !slices.Equal(got, []string{"id-0", "id-1"}) {
		t.Errorf("got %q, want both in one partition", got)
	}
}

// TestResendEnds: a batch is not sent again for so long that the broker could have forgotten its producer.
func TestResendEnds(t *testing.T) {
	cluster := broker.Get(t)
	ways := newNetwork()
	options := testOptions(t, cluster, 1)
	options.Wire.Dial, options.Wire.Timeout = ways.dial, 300*time.Millisecond
	s := newTestSink(t, options)
	s.tuning.resend = 200 * time.Millisecond
	open(t, s, "")
	mark := mustWrite(t, s, messagesOf(options.Topics[0], 1))
	resume := ways.stall()
	messages := messagesOf(options.Topics[0], 10)[1:]
	_, err := s.Write(t.Context(), messages)
	var again *reopenError
	if !errors.As(err, &again) {
		t.Fatalf("got %v, want an error that Open answers", err)
	}
	resume()
	if _, _, err := rewrite(t, s, mark, messages); err != nil {
		t.Fatal(err)
	}
	sameSet(t, "topic", storedIDs(t, cluster, options.Topics...), idsOf(messagesOf("", 10)))
}

// TestI3LateCopyOfAGivenUpWrite: the batch of a Write whose context ended is made durable before the tail is read.
func TestI3LateCopyOfAGivenUpWrite(t *testing.T) {
	cluster := broker.Get(t)
	ways := newNetwork()
	options := testOptions(t, cluster, 1)
	options.Wire.Dial = ways.dial
	s := newTestSink(t, options)
	s.tuning.grace = 50 * time.Millisecond
	open(t, s, "")
	mark := mustWrite(t, s, nil)
	resume := ways.stall()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	messages := messagesOf(options.Topics[0], 10)
	if _, err := s.Write(ctx, messages); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want the context's error", err)
	}
	resume()
	if _, left, err := rewrite(t, s, mark, messages); err != nil || len(left) > 0 {
		t.Errorf("%d messages were not found, %v", len(left), err)
	}
	sameSet(t, "topic", storedIDs(t, cluster, options.Topics...), idsOf(messages))
}

// TestABatchKeepsTheMemoryOfAnAttemptWithoutAnAnswer: a connection that was given up may still read it.
func TestABatchKeepsTheMemoryOfAnAttemptWithoutAnAnswer(t *testing.T) {
	options := testOptions(t, broker.Get(t), 1)
	s := newTestSink(t, options)
	open(t, s, "")
	mustWrite(t, s, messagesOf(options.Topics[0], 1))
	p := s.topics[options.Topics[0]].partitions[0]
	for _, sent := range []int{2, 1} {
		for s.sender.spare.Get() != nil {
		}
		p.frozen = &frozen{count: 1, sent: sent}
		must(t, s.sender.acknowledged(p, p.next))
		if isSpare := s.sender.spare.Get() != nil; isSpare != (sent == 1) {
			t.Errorf("after %d attempts the memory is spare: %v", sent, isSpare)
		}
	}
}
