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

func testOptions(t *testing.T, cluster *kafkatest.Cluster, topics int) Options {
	t.Helper()
	return Options{
		Wire: wire.Options{Brokers: cluster.Brokers()}, Topics: newTopics(topics), Create: true, Partitions: 2, Compression: "none",
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		last := ""
		for data := result.Records; len(data) > 0; batches++ {
			b, rest, err := batch.Read(data)
			if err != nil || b == nil {
				t.Fatal(b, err)
			}
			data = rest
			first := true
			if err := batch.NewDecoder(1<<20).Each(b, func(e *batch.Entry) error {
				id, _ := e.Header(sink.HeaderID)
				if first && string(id) == last {
					t.Errorf("%s is split over two batches", id)
				}
				first, last = false, string(id)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if b.Count > 3 {
				t.Errorf("a batch of %d records", b.Count)
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
	for _, delivery := range []string{Idempotent, Transactional} {
		t.Run(delivery, func(t *testing.T) {
			options := testOptions(t, cluster, 2)
			options.Delivery = delivery
			if delivery == Transactional {
				options.TransactionalID = options.Topics[0]
			}
			s := newTestSink(t, options)
			open(t, s, "")
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
			if !errors.As(err, &rejected) || rejected.Reason != "invalid" || left[rejected.Index].ID != "id-13" || mark == "" {
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
}

// TestI4LimitThatIsLowered finds out about the limit by the broker's refusal, and cuts smaller.
func TestI4LimitThatIsLowered(t *testing.T) {
	cluster := broker.Get(t)
	kafkatest.RequireReal(t)
	options := testOptions(t, cluster, 1)
	s := newTestSink(t, options)
	open(t, s, "")
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
}

// TestI4TopicMadeAgainWhileProducing: Kafka takes the next batch as if nothing had happened (measured).
func TestI4TopicMadeAgainWhileProducing(t *testing.T) {
	cluster := broker.Get(t)
	for _, delivery := range []string{Idempotent, Transactional} {
		t.Run(delivery, func(t *testing.T) {
			options := testOptions(t, cluster, 1)
			options.Delivery, options.Partitions = delivery, 1
			if delivery == Transactional {
				options.TransactionalID = options.Topics[0]
			}
			s := newTestSink(t, options)
			open(t, s, "")
			mark := mustWrite(t, s, messagesOf(options.Topics[0], 5))
			cluster.DeleteTopic(t, options.Topics[0])
			cluster.CreateTopic(t, options.Topics[0], kafkatest.Topic{Partitions: 1})
			var permanent *sink.PermanentError
			if _, err := s.Write(t.Context(), messagesOf(options.Topics[0], 1)); err == nil || errors.As(err, &permanent) {
				t.Fatalf("Write to a topic that was made again: %v", err)
			}
			var lost *sink.LostError
			if _, err := s.Open(t.Context(), mark); !errors.As(err, &lost) {
				t.Fatalf("Open: %v, want a LostError", err)
			}
			mark = mustWrite(t, s, messagesOf(options.Topics[0], 3))
			open(t, newTestSink(t, options), mark)
		})
	}
}

// TestI4TopicMadeAgainAndGrown has as many records as before, so only its id is another one.
func TestI4TopicMadeAgainAndGrown(t *testing.T) {
	cluster := broker.Get(t)
	kafkatest.RequireReal(t)
	options := testOptions(t, cluster, 1)
	s := newTestSink(t, options)
	open(t, s, "")
	mark := mustWrite(t, s, messagesOf(options.Topics[0], 5))
	cluster.DeleteTopic(t, options.Topics[0])
	other := newTestSink(t, options)
	open(t, other, "")
	mustWrite(t, other, messagesOf(options.Topics[0], 50))
	var lost *sink.LostError
	if _, err := newTestSink(t, options).Open(t.Context(), mark); !errors.As(err, &lost) {
		t.Fatalf("Open: %v, want a LostError", err)
	}
}

// TestTopicsThatTheMarkDoesNotName are read from their start: one that is new to the configuration, and records of a
// crash may be in it already.
func TestTopicsThatTheMarkDoesNotName(t *testing.T) {
	cluster := broker.Get(t)
	options := testOptions(t, cluster, 2)
	before := options
	before.Topics = options.Topics[:1]
	s := newTestSink(t, before)
	open(t, s, "")
	mark := mustWrite(t, s, nil)
	messages := messagesOf(options.Topics[1], 20)
	messages[3].Destination = "no topic/at all"
	later, err := s.Write(t.Context(), messages) // to one that is not listed
	var rejected *sink.RejectedError
	if !errors.As(err, &rejected) || rejected.Index != 3 || rejected.Reason != "invalid" {
		t.Fatalf("got %v, want a rejection of message 3", err)
	}
	messages = slices.Delete(messages, 3, 4)
	later = mustWrite(t, s, messages[3:])
	sameSet(t, "behind a mark without the topic", open(t, newTestSink(t, options), mark), idsOf(messages))
	sameSet(t, "behind a mark with the topic", open(t, newTestSink(t, options), later), nil)
	cluster.DeleteTopic(t, options.Topics[1])
	sameSet(t, "with a topic that nobody needs any more", open(t, newTestSink(t, before), later), nil)
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
		s := newTestSink(t, options)
		open(t, s, "")
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
