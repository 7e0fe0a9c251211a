package kafka

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
)

// TestI3NothingOfADeadExporterComesLate: a request lies in a socket, as that of a stopped or throttled broker, while
// the process that sent it dies. Its successor reads the log, and writes newer states of the same objects. Before that
// or after it the broker finds the request.
func TestI3NothingOfADeadExporterComesLate(t *testing.T) {
	kafkatest.RequireReal(t)
	cluster := broker.Get(t)
	for _, test := range []struct {
		delivery string
		early    bool
	}{{Idempotent, false}, {Idempotent, true}, {Transactional, false}, {Transactional, true}} {
		t.Run(fmt.Sprintf("%s, early %t", test.delivery, test.early), func(t *testing.T) {
			delivery := test.delivery
			options := testOptions(t, cluster, 1)
			options.Delivery = delivery
			topic := options.Topics[0]
			ways, dying := newNetwork(), options
			dying.Wire.Dial = ways.dial
			old := newTestSink(t, dying)
			old.tuning.grace = 10 * time.Millisecond
			open(t, old, "")
			mark := mustWrite(t, old, states(topic, "1"))
			late := ways.hold(anyRequest)
			late.kill(t, old, func(ctx context.Context) error {
				_, err := old.Write(ctx, states(topic, "2"))
				return err
			})

			next := newTestSink(t, options)
			if known := open(t, next, mark); len(known) > 0 {
				t.Fatalf("%q is in the log already", known)
			}
			if test.early {
				late.release()
			}
			mustWrite(t, next, states(topic, "3"))
			if !test.early {
				late.release()
			}
			newest := map[string]string{}
			for _, r := range committed(t, cluster, topic) {
				newest[string(r.Key)] = string(r.Headers[0].Value)
				if strings.HasSuffix(string(r.Headers[0].Value), "-2") {
					t.Errorf("the log has %s, which came late", r.Headers[0].Value)
				}
			}
			for key, id := range newest {
				if !strings.HasSuffix(id, "-3") {
					t.Errorf("of %s the log ends with %s", key, id)
				}
			}
			if len(newest) != 10 {
				t.Errorf("the log has %d objects", len(newest))
			}
		})
	}
}

// states are ten objects in a version.
func states(topic, version string) []sink.Message {
	all := messagesOf(topic, 10)
	for i := range all {
		all[i].ID = fmt.Sprintf("%s-%s", all[i].Key, version)
	}
	return all
}

// TestWithoutTheRightThereIsNoFence: a user who must not use the transactional id is told once, by Check and by Open.
func TestWithoutTheRightThereIsNoFence(t *testing.T) {
	kafkatest.RequireReal(t)
	cluster := secured.Get(t)
	cluster.CreateTopic(t, "k8s.unfenced", kafkatest.Topic{Config: map[string]string{"max.message.bytes": "2000000"}})
	for _, operation := range []kmsg.ACLOperation{kmsg.ACLOperationWrite, kmsg.ACLOperationRead, kmsg.ACLOperationDescribeConfigs} {
		cluster.AddACL(t, kafkatest.ACL{User: "carol", Operation: operation, Resource: "k8s.unfenced"})
	}
	var told []string
	options := Options{
		Wire:   wireAs(cluster, "carol"),
		Topics: []string{"k8s.unfenced"}, TransactionalID: "the-id",
		Retry: func(reason string, err error) { told = append(told, reason+" "+err.Error()) },
	}
	note, err := answeredCheck(t, options)
	contains(t, "error", text(err), nil)
	contains(t, "note", note, []string{"WRITE", "transactional id the-id", "second exporter"})
	s := opened(t, options)
	mark := mustWrite(t, s, nil)
	mustWrite(t, s, messagesOf("k8s.unfenced", 3))
	sameSet(t, "tail", open(t, s, mark), idsOf(messagesOf("", 3)))
	told = slices.DeleteFunc(told, func(line string) bool { return !strings.HasPrefix(line, "unfenced ") })
	if len(told) != 1 || !strings.Contains(told[0], "grant the user WRITE on transactional id the-id") || !strings.Contains(told[0], "second exporter") {
		t.Errorf("was told %q, want once that nobody is kept out", told)
	}
	cluster.AddACL(t, kafkatest.ACL{User: "carol", Operation: kmsg.ACLOperationWrite, Type: kmsg.ACLResourceTypeTransactionalId, Resource: "the-id"})
	for ctx := within(t); !s.right.owned && ctx.Err() == nil; { // brokers take a moment to hear of it
		open(t, s, mark)
	}
	opened(t, options, mark)
	if _, err := s.Write(t.Context(), messagesOf("k8s.unfenced", 1)); err == nil {
		t.Error("an exporter that was replaced writes on")
	}
}

// TestI10TheRightIsRenewed before the coordinator forgets it, and a renewal finds out who has taken it.
func TestI10TheRightIsRenewed(t *testing.T) {
	cluster := broker.Get(t)
	kafkatest.RequireReal(t)
	options := testOptions(t, cluster, 1)
	s := opened(t, options)
	mustWrite(t, s, messagesOf(options.Topics[0], 10))
	first := s.right.producer
	s.tuning.renewal = 0
	mustWrite(t, s, messagesOf(options.Topics[0], 20)[10:])
	if s.right.producer.ID != first.ID || s.right.producer.Epoch != first.Epoch+1 {
		t.Errorf("the producer is %+v after %+v", s.right.producer, first)
	}
	sameSet(t, "topic", storedIDs(t, cluster, options.Topics...), idsOf(messagesOf("", 20)))
	other := newTestSink(t, options)
	_, err := connected(t, other).InitProducer(t.Context(), options.TransactionalID, time.Minute, wire.NoProducer())
	must(t, err)
	_, err = s.Write(t.Context(), messagesOf(options.Topics[0], 1))
	expectFenced(t, err, "another exporter")
}

func connected(t *testing.T, s *Sink) *wire.Cluster {
	t.Helper()
	must(t, s.connect())
	return s.cluster
}

// TestI4AFenceHidesNoLoss: a log that has lost its last record is one shorter than the mark, and the fence would make
// it as long again. So the loss is found by each life that comes before it was noted.
func TestI4AFenceHidesNoLoss(t *testing.T) {
	cluster := broker.Get(t)
	options := testOptions(t, cluster, 1)
	options.Partitions = 1
	topic := options.Topics[0]
	s := opened(t, options)
	mark := mustWrite(t, s, messagesOf(topic, 5))
	ahead := sink.Mark(strings.Replace(string(mark), `"next":[6]`, `"next":[7]`, 1))
	if ahead == mark {
		t.Fatalf("the mark is %s", mark)
	}
	for range 3 {
		expectLost(t, newTestSink(t, options), ahead)
	}
	last := newTestSink(t, options)
	expectLost(t, last, ahead)
	mustWrite(t, last, messagesOf(topic, 7)[5:])
	if _, err := s.Write(t.Context(), messagesOf(topic, 1)); err == nil {
		t.Error("an older sink writes behind a newer one whose log had lost something")
	}
}

// TestI3ATopicThatComesLaterIsFenced before its first record.
func TestI3ATopicThatComesLaterIsFenced(t *testing.T) {
	cluster := broker.Get(t)
	kafkatest.RequireReal(t)
	options := testOptions(t, cluster, 2)
	later := options.Topics[1]
	options.Topics = options.Topics[:1]
	s, next := newTestSink(t, options), newTestSink(t, options)
	open(t, s, "")
	mustWrite(t, s, messagesOf(later, 5))
	open(t, next, "")
	mustWrite(t, next, messagesOf(later, 10)[5:])
	if _, err := s.Write(t.Context(), messagesOf(later, 1)); err == nil {
		t.Error("the older sink writes to the topic, too")
	}
	sameSet(t, "topic", storedIDs(t, cluster, later), idsOf(messagesOf("", 10)))
}
