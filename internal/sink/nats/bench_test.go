package nats

import (
	"fmt"
	"testing"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// batchSize is the number of messages in one operation of the benchmarks.
const batchSize = 1000

// BenchmarkWrite writes to a server in this process, through a socket. With few objects, a batch has several changes of
// one, and each has to wait for the one before it.
func BenchmarkWrite(b *testing.B) {
	for _, test := range []struct{ size, objects int }{{1 << 10, 20_000}, {12 << 10, 20_000}, {1 << 10, 200}} {
		b.Run(fmt.Sprintf("%dKiB/objects=%d", test.size>>10, test.objects), func(b *testing.B) {
			s := openSink(b, startServer(b).options())
			b.SetBytes(int64(batchSize * test.size))
			b.ReportAllocs()
			for number := 0; b.Loop(); {
				b.StopTimer()
				batch := benchBatch(test.size, test.objects, &number)
				b.StartTimer()
				write(b, s, batch)
			}
		})
	}
}

// BenchmarkOpen reads what is after a mark: one batch of 12 KiB messages.
func BenchmarkOpen(b *testing.B) {
	server := startServer(b)
	s := openSink(b, server.options())
	mark := write(b, s, nil)
	write(b, s, benchBatch(12<<10, 20_000, new(int)))
	for b.Loop() {
		if ids, err := sinktest.Open(b.Context(), s, mark); err != nil || len(ids) != batchSize {
			b.Fatal(len(ids), err)
		}
	}
}

func benchBatch(size, objects int, number *int) []sink.Message {
	batch := make([]sink.Message, batchSize)
	value := make([]byte, size)
	for i := range batch {
		object := *number * 7919 % objects
		batch[i] = sink.Message{
			ID:              fmt.Sprintf("0a1b2c3d/pods/shop/web-%d/uid/%d/updated", object, *number),
			Op:              "updated",
			ResourceVersion: fmt.Sprint(*number),
			Destination:     fmt.Sprintf("k8s.test.core.pods.shop.web-%d", object),
			Value:           value,
		}
		*number++
	}
	return batch
}
