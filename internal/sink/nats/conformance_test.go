package nats

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

func TestConformance(t *testing.T) { sinktest.Run(t, sinktest.Harness{New: newEnv}) }

func newEnv(t *testing.T) *sinktest.Env {
	server, network, options := proxied(t)
	return &sinktest.Env{
		Sink:        func(*testing.T) sink.Sink { return must(New(options)) },
		Messages:    func(*testing.T) []sinktest.Stored { return server.stored() },
		Destination: destination,
		TooLarge:    1<<20 + 1,
		MaxValue:    1<<20 - 4<<10, // the largest payload of a server, and some headers
		Foreign: func(t *testing.T) {
			openSink(t, options) // makes the stream
			server.publish("k8s.foreign", "")
		},
		Cut:      network.cut,
		Stall:    func(*testing.T) func() { return network.stall() },
		Truncate: func(*testing.T) { server.truncate() },
		Recreate: func(*testing.T) { server.deleteStream() },
	}
}
