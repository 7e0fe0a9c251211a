package kafka

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

func TestConformanceIdempotent(t *testing.T) {
	conformance(t, Options{Compression: "none"}, 1<<20+1)
}

// TestConformanceTransactional has a limit that is one for compressed batches: a megabyte passes, and eight do not.
func TestConformanceTransactional(t *testing.T) {
	options := Options{Delivery: Transactional, Compression: "snappy", Configs: map[string]string{"max.message.bytes": "200000"}}
	conformance(t, options, 8<<20)
}

func conformance(t *testing.T, options Options, tooLarge int) {
	cluster := broker.Get(t)
	sinktest.Run(t, sinktest.Harness{New: func(t *testing.T) *sinktest.Env {
		env := newEnv(t, cluster, options)
		env.TooLarge = tooLarge
		return env
	}})
}

// testNumber gives each test topics and transactional ids of its own.
var testNumber atomic.Int64

func newTopics(n int) []string {
	prefix := fmt.Sprintf("k8s.test-%d.", testNumber.Add(1))
	topics := make([]string, n)
	for i := range topics {
		topics[i] = fmt.Sprint(prefix, "resource", i)
	}
	return topics
}

func newEnv(t *testing.T, cluster *kafkatest.Cluster, options Options) *sinktest.Env {
	ways := newNetwork()
	options.Topics = newTopics(2)
	options.Create, options.Partitions = true, 2
	options.Wire = wire.Options{Brokers: cluster.Brokers(), Dial: ways.dial, Timeout: 2 * time.Second}
	options.TransactionalID = options.Topics[0]
	return &sinktest.Env{
		Sink:        func(t *testing.T) sink.Sink { return newTestSink(t, options) },
		Messages:    func(t *testing.T) []sinktest.Stored { return stored(t, cluster, options.Topics...) },
		Destination: func(number int) string { return options.Topics[number%2] },
		Partitioned: true, Pairs: true,
		MaxValue: 1<<20 - 4<<10,
		Foreign: func(t *testing.T) {
			cluster.CreateTopic(t, options.Topics[0], kafkatest.Topic{Partitions: 2, Config: options.Configs})
			produce(t, cluster, &kgo.Record{Topic: options.Topics[0], Key: []byte("a"), Value: []byte("foreign")})
		},
		Cut:   ways.cut,
		Stall: func(*testing.T) func() { return ways.stall() },
		Recreate: func(t *testing.T) {
			for _, topic := range options.Topics {
				cluster.DeleteTopic(t, topic)
			}
		},
	}
}

func newTestSink(t *testing.T, options Options) *Sink {
	t.Helper()
	s, err := New(options)
	must(t, err)
	s.tuning.gone = 300 * time.Millisecond
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

// stored is all that is committed, partition by partition.
func stored(t *testing.T, cluster *kafkatest.Cluster, topics ...string) []sinktest.Stored {
	t.Helper()
	var all []sinktest.Stored
	for _, topic := range topics {
		if !exists(t, cluster, topic) {
			continue
		}
		for _, r := range committed(t, cluster, topic) {
			message := sinktest.Stored{Value: r.Value, Destination: topic, Headers: []sink.Header{}}
			for _, h := range r.Headers {
				message.Headers = append(message.Headers, sink.Header{Name: h.Key, Value: string(h.Value)})
				if h.Key == sink.HeaderID {
					message.ID = string(h.Value)
				}
			}
			all = append(all, message)
		}
	}
	return all
}

func exists(t *testing.T, cluster *kafkatest.Cluster, topic string) bool {
	t.Helper()
	c, err := wire.New(wire.Options{Brokers: cluster.Brokers()})
	must(t, err)
	defer c.Close()
	ctx := within(t)
	for {
		switch _, err = c.Topic(ctx, topic); {
		case err == nil:
			return true
		case wire.Code(err) == kerr.UnknownTopicOrPartition.Code:
			return false
		case ctx.Err() != nil || wire.Classify(err) != wire.Retriable:
			t.Fatal(err)
		}
	}
}

func produce(t *testing.T, cluster *kafkatest.Cluster, records ...*kgo.Record) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.Brokers()...))
	must(t, err)
	defer client.Close()
	must(t, client.ProduceSync(t.Context(), records...).FirstErr())
}

func open(t *testing.T, s *Sink, mark sink.Mark) []string {
	t.Helper()
	ids, err := sinktest.Open(t.Context(), s, mark)
	must(t, err)
	return ids
}
