package kafka

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// batchSize is the number of messages in one operation of the benchmarks.
const batchSize = 1000

// BenchmarkWrite writes objects of 12 KiB to a broker on this machine; the CPU time of this process is the figure.
func BenchmarkWrite(b *testing.B) {
	cluster := broker.Get(b)
	for _, delivery := range []string{Idempotent, Transactional} {
		for _, codec := range batch.Codecs() {
			b.Run(delivery+"/"+codec, func(b *testing.B) {
				s, topic := benchSink(b, cluster, Options{Compression: codec, Delivery: delivery})
				messages := benchMessages(topic)
				b.SetBytes(batchSize * objectSize)
				b.ReportAllocs()
				start := cpuTime(b)
				for b.Loop() {
					if _, err := s.Write(b.Context(), messages); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)*batchSize/(cpuTime(b)-start).Seconds(), "events/cpu-s")
			})
		}
	}
}

// BenchmarkOpen reads what is after a mark: ten batches of 12 KiB messages.
func BenchmarkOpen(b *testing.B) {
	cluster := broker.Get(b)
	s, topic := benchSink(b, cluster, Options{Compression: "zstd", Delivery: Idempotent})
	mark, err := s.Write(b.Context(), nil)
	must(b, err)
	for range 10 {
		if _, err := s.Write(b.Context(), benchMessages(topic)); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if ids, err := sinktest.Open(b.Context(), s, mark); err != nil || len(ids) != 10*batchSize {
			b.Fatal(len(ids), err)
		}
	}
}

// cpuTime is what this process has used; the broker is another one.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used unix.Rusage
	must(b, unix.Getrusage(unix.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func benchSink(b *testing.B, cluster *kafkatest.Cluster, options Options) (*Sink, string) {
	b.Helper()
	options.Wire = wire.Options{Brokers: cluster.Brokers()}
	options.Topics, options.Create, options.Partitions = newTopics(1), true, 12
	options.TransactionalID = options.Topics[0]
	s, err := New(options)
	must(b, err)
	if _, err := sinktest.Open(b.Context(), s, ""); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(b.Context()); err != nil {
			b.Error(err)
		}
	})
	return s, options.Topics[0]
}

const objectSize = 12 << 10

// benchMessages have values that compress about as an API server's objects do.
func benchMessages(topic string) []sink.Message {
	dice := rand.New(rand.NewPCG(1, 2))
	messages := make([]sink.Message, batchSize)
	for i := range messages {
		value := make([]byte, 0, objectSize+200)
		for len(value) < objectSize {
			value = fmt.Appendf(value, `{"name":"container-%d","image":"registry.example/team/app:%x","env":[{"name":"LOG_LEVEL","value":"info"}],"uid":"%016x"},`,
				dice.IntN(10), dice.Uint32(), dice.Uint64())
		}
		messages[i] = message(topic, fmt.Sprint("shop/web-", i), fmt.Sprintf("0a1b2c3d/pods/shop/web-%d/uid/%d/updated", i, i))
		messages[i].Value = value[:objectSize]
	}
	return messages
}
