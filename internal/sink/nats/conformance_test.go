package nats

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// TestConformance of a stream of our own, also on a server that syncs every message, and of a shared one.
func TestConformance(t *testing.T) {
	syncAlways := func(o *server.Options) { o.SyncAlways = true }
	for _, test := range []struct {
		name   string
		server func(*server.Options)
		sink   Options
	}{
		{"own", nil, Options{}},
		{"synced", syncAlways, Options{}},
		{"shared", nil, Options{Shared: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			sinktest.Run(t, sinktest.Harness{New: func(t *testing.T) *sinktest.Env { return newEnv(t, test.sink, test.server) }})
		})
	}
}

func newEnv(t *testing.T, options Options, change func(*server.Options)) *sinktest.Env {
	server := startServer(t, change)
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
