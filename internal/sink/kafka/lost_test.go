package kafka

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
)

// TestI4TopicMadeAgainWhileProducing: Kafka takes the next batch as if nothing had happened (measured).
func TestI4TopicMadeAgainWhileProducing(t *testing.T) {
	cluster := broker.Get(t)
	eachDelivery(t, 1, func(t *testing.T, options Options) {
		options.Partitions = 1
		topic := options.Topics[0]
		s := opened(t, options)
		mark := mustWrite(t, s, messagesOf(topic, 5))
		cluster.DeleteTopic(t, topic)
		cluster.CreateTopic(t, topic, kafkatest.Topic{Partitions: 1})
		_, err := s.Write(t.Context(), messagesOf(topic, 1))
		expectReopen(t, err)
		expectLost(t, s, mark)
		opened(t, options, mustWrite(t, s, messagesOf(topic, 3)))
	})
}

// TestI4RecallGivesAllThatALogHolds, in the order of each key, whatever the mark is.
func TestI4RecallGivesAllThatALogHolds(t *testing.T) {
	eachDelivery(t, 2, func(t *testing.T, options Options) {
		s := newTestSink(t, options)
		s.tuning.records = 3
		open(t, s, "")
		messages := append(messagesOf(options.Topics[0], 40), messagesOf(options.Topics[1], 9)...)
		for i := range messages {
			messages[i].ID = fmt.Sprint(messages[i].Destination, "/", string(messages[i].Key), "/", i)
		}
		mustWrite(t, s, messages[:25])
		mark := mustWrite(t, s, messages[25:])
		next := opened(t, options, mark)
		last := map[string]int{}
		var got []string
		must(t, next.Reread(t.Context(), func(id string) error {
			at := strings.LastIndex(id, "/")
			number, err := strconv.Atoi(id[at+1:])
			if before, found := last[id[:at]]; found && before >= number {
				t.Errorf("%s comes after number %d", id, before)
			}
			last[id[:at]] = number
			got = append(got, id)
			return err
		}))
		sameSet(t, "the log", got, idsOf(messages))
		stop := errors.New("stop")
		if err := next.Reread(t.Context(), func(string) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("the error of each became %v", err)
		}
	})
}

// TestI4TopicMadeAgainAndGrown has as many records as before, so only its id is another one.
func TestI4TopicMadeAgainAndGrown(t *testing.T) {
	cluster := broker.Get(t)
	kafkatest.RequireReal(t)
	options := testOptions(t, cluster, 1)
	s := opened(t, options)
	mark := mustWrite(t, s, messagesOf(options.Topics[0], 5))
	cluster.DeleteTopic(t, options.Topics[0])
	other := opened(t, options)
	mustWrite(t, other, messagesOf(options.Topics[0], 50))
	expectLost(t, newTestSink(t, options), mark)
}
