package nats

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// TestConformance of a stream that is ours alone, and of a shared one.
func TestConformance(t *testing.T) {
	for _, test := range []struct {
		name string
		sink Options
	}{
		{"alone", Options{}},
		{"shared", Options{Shared: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			sinktest.Run(t, sinktest.Harness{New: func(t *testing.T) *sinktest.Env { return newEnv(t, test.sink) }})
		})
	}
}

func newEnv(t *testing.T, options Options) *sinktest.Env {
	server := startServer(t)
	network := startProxy(t, server.Addr().String())
	options.URL, options.Stream, options.Subjects = network.url(), testStream, []string{"k8s.>"}
	return &sinktest.Env{
		Sink:        func(*testing.T) sink.Sink { return must(New(options)) },
		Messages:    func(*testing.T) []sinktest.Stored { return server.stored() },
		Destination: destination,
		Fenced:      !options.Shared,
		SeesLoss:    true,
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
