package kafka

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// TestI3I10ALateRequestOfADeadExporterTakesNothing: an exporter is killed while a broker has its request for a producer
// id in a socket. Its successor has opened and written when the broker finds the request, which then takes the
// transactional id. That is no second exporter: the successor goes on, and each record is there once.
func TestI3I10ALateRequestOfADeadExporterTakesNothing(t *testing.T) {
	kafkatest.RequireReal(t)
	cluster := broker.Get(t)
	for _, c := range []struct {
		name, delivery string
		ongoing        bool
	}{
		{"idempotent", Idempotent, false},
		{"between transactions", Transactional, false},
		{"in a transaction", Transactional, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			options := testOptions(t, cluster, 1)
			options.Delivery = c.delivery
			topic := options.Topics[0]
			late := dyingRequest(t, options)
			s := newTestSink(t, options)
			s.tuning.silence = 0
			open(t, s, "")
			mark := mustWrite(t, s, messagesOf(topic, 5))
			if c.ongoing {
				leaveOpen(t, s, messagesOf(topic, 10)[5:])
				s.opened = true
			}
			if !c.ongoing {
				open(t, s, mark) // which waits until the last one has ended: requests that come before are put off
			}
			late.release()
			s.tuning.renewal = 0
			_, err := s.Write(t.Context(), messagesOf(topic, 10)[5:])
			expectReopen(t, err)
			mark, _, err = rewrite(t, s, mark, messagesOf(topic, 10)[5:])
			must(t, err)
			mustWrite(t, s, messagesOf(topic, 15)[10:])
			cluster.AwaitTransactions(t, topic)
			sameSet(t, "topic", storedIDs(t, cluster, topic), idsOf(messagesOf("", 15)))
			if known := open(t, newTestSink(t, options), mark); len(known) != 5 {
				t.Errorf("the next life finds %q behind the mark", known)
			}
		})
	}
}

// dyingRequest is the request for a producer id of an exporter that is killed while it waits for the answer.
func dyingRequest(t *testing.T, options Options) *held {
	t.Helper()
	ways := newNetwork()
	options.Wire.Dial = ways.dial
	dying := newTestSink(t, options)
	dying.tuning.grace = 10 * time.Millisecond
	late := ways.hold(initProducerID)
	late.kill(t, dying, func(ctx context.Context) error {
		_, err := sinktest.Open(ctx, dying, "")
		return err
	})
	return late
}

// TestI10WhoIsStartingIsWaitedFor: another exporter has asked for the right, and shows a moment later that it lives.
func TestI10WhoIsStartingIsWaitedFor(t *testing.T) {
	kafkatest.RequireReal(t)
	eachDelivery(t, 1, func(t *testing.T, options Options) {
		younger := newTestSink(t, options)
		signs := false
		waiting := options
		waiting.Retry = func(reason string, _ error) {
			if reason == "unsigned" && !signs {
				signs = true
				open(t, younger, "")
			}
		}
		older := newTestSink(t, waiting)
		older.tuning.silence = limit
		open(t, older, "")
		mark := mustWrite(t, older, nil)
		starting, err := connected(t, younger).InitProducer(t.Context(), options.TransactionalID, younger.tuning.unsigned(), wire.NoProducer())
		must(t, err)
		younger.right.owner, younger.right.sign = starting, younger.tuning.sign()
		_, err = sinktest.Open(t.Context(), older, mark)
		if expectFenced(t, err, ""); !signs {
			t.Error("nobody waited for the younger one")
		}
		mustWrite(t, younger, messagesOf(options.Topics[0], 5))
	})
}

// TestI10OldBrokersDoNotSayWhoTookTheRight, so that it was another exporter is assumed, and the error says what else it
// may have been.
func TestI10OldBrokersDoNotSayWhoTookTheRight(t *testing.T) {
	fake := newFake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"), kfake.MaxVersions(kversion.V2_8_0()))
	options := Options{Wire: wire.Options{Brokers: fake.ListenAddrs()}, Topics: []string{"t"}, TransactionalID: "id", Delivery: Transactional}
	s := opened(t, options)
	mark := mustWrite(t, s, nil)
	fake.ControlKey(int16(kmsg.InitProducerID), func(r kmsg.Request) (kmsg.Response, error, bool) {
		answer := r.ResponseKind().(*kmsg.InitProducerIDResponse)
		answer.ErrorCode = kerr.ProducerFenced.Code
		return answer, nil, true
	})
	_, err := sinktest.Open(t.Context(), s, mark)
	expectFenced(t, err, "another exporter has taken it over", "start this one again")
}
