package nats

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// TestConformance tries every publish mode, each on the servers that it is for.
func TestConformance(t *testing.T) {
	syncAlways := func(o *server.Options) { o.SyncAlways = true }
	for _, test := range []struct {
		name   string
		server func(*server.Options)
		sink   Options
	}{
		{"fast", nil, Options{Publish: PublishFast}},
		{"ordered", nil, Options{Publish: PublishOrdered}}, // the stream allows no batches, as on an older server
		{"atomic", syncAlways, Options{Publish: PublishAtomic}},
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
	options.Notice = func(text string) {
		if options.Publish != "" && !strings.HasPrefix(text, "messages are sent "+options.Publish+": ") {
			t.Errorf("%s, want %s", text, options.Publish)
		}
	}
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
