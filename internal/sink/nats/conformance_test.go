package nats

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/sinktest"
)

func TestConformance(t *testing.T) {
	sinktest.Run(t, sinktest.Harness{New: newEnv})
}

func newEnv(t *testing.T) *sinktest.Env {
	server := startServer(t, nil)
	network := startProxy(t, server.inner.Addr().String())
	return &sinktest.Env{
		Sink: func(t *testing.T) sink.Sink {
			s, err := New(Options{URL: network.url(), Stream: testStream, Subjects: []string{"k8s.>"}})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		Messages:    func(*testing.T) []sinktest.Stored { return server.stored() },
		Destination: destination,
		Fenced:      true,
		SeesLoss:    true,
		TooLarge:    1<<20 + 1,
		MaxValue:    1<<20 - 4<<10, // the largest payload of a server, and some headers
		Foreign: func(t *testing.T) {
			openSink(t, server.options()) // makes the stream
			server.publish("k8s.foreign", "")
		},
		Cut:      network.cut,
		Stall:    func(*testing.T) func() { return network.stall() },
		Truncate: func(*testing.T) { server.truncate() },
		Recreate: func(*testing.T) { server.deleteStream() },
	}
}
