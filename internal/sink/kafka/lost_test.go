package kafka

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/sink"
	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

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
			if _, err := sinktest.Open(t.Context(), s, mark); !errors.As(err, &lost) {
				t.Fatalf("Open: %v, want a LostError", err)
			}
			mark = mustWrite(t, s, messagesOf(options.Topics[0], 3))
			open(t, newTestSink(t, options), mark)
		})
	}
}

// TestI4RecallGivesAllThatALogHolds, in the order of each key, whatever the mark is.
func TestI4RecallGivesAllThatALogHolds(t *testing.T) {
	cluster := broker.Get(t)
	for _, delivery := range []string{Idempotent, Transactional} {
		options := testOptions(t, cluster, 2)
		options.Delivery = delivery
		if delivery == Transactional {
			options.TransactionalID = options.Topics[0]
		}
		s := newTestSink(t, options)
		s.tuning.records = 3
		open(t, s, "")
		messages := append(messagesOf(options.Topics[0], 40), messagesOf(options.Topics[1], 9)...)
		for i := range messages {
			messages[i].ID = fmt.Sprint(messages[i].Destination, "/", string(messages[i].Key), "/", i)
		}
		mustWrite(t, s, messages[:25])
		mark := mustWrite(t, s, messages[25:])
		next := newTestSink(t, options)
		open(t, next, mark)
		last := map[string]int{}
		var got []string
		if err := next.Recall(t.Context(), func(id string) error {
			at := strings.LastIndex(id, "/")
			number, err := strconv.Atoi(id[at+1:])
			if before, found := last[id[:at]]; found && before >= number {
				t.Errorf("%s comes after number %d", id, before)
			}
			last[id[:at]] = number
			got = append(got, id)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		sameSet(t, delivery, got, idsOf(messages))
		stop := errors.New("stop")
		if err := next.Recall(t.Context(), func(string) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("the error of each became %v", err)
		}
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
	if _, err := sinktest.Open(t.Context(), newTestSink(t, options), mark); !errors.As(err, &lost) {
		t.Fatalf("Open: %v, want a LostError", err)
	}
}
