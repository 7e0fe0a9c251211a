package nats

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/sinktest"
)

// TestConformance tries every way of sending, each on the servers that it is for.
func TestConformance(t *testing.T) {
	for _, test := range []struct {
		publish string
		server  func(*server.Options)
	}{
		{PublishFast, nil},
		{PublishOrdered, nil}, // the stream allows no batches, as on an older server
		{PublishAtomic, func(o *server.Options) { o.SyncAlways = true }},
	} {
		t.Run(test.publish, func(t *testing.T) {
			sinktest.Run(t, sinktest.Harness{New: func(t *testing.T) *sinktest.Env { return newEnv(t, test.publish, test.server) }})
		})
	}
}

func newEnv(t *testing.T, publish string, change func(*server.Options)) *sinktest.Env {
	server := startServer(t, change)
	network := startProxy(t, server.inner.Addr().String())
	return &sinktest.Env{
		Sink: func(t *testing.T) sink.Sink {
			s, err := New(Options{URL: network.url(), Stream: testStream, Subjects: []string{"k8s.>"}, Publish: publish, Notice: func(text string) {
				if !strings.HasPrefix(text, "messages are sent "+publish+": ") {
					t.Errorf("%s, want %s", text, publish)
				}
			}})
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
			options := server.options()
			options.Publish = publish
			openSink(t, options) // makes the stream
			server.publish("k8s.foreign", "")
		},
		Cut:      network.cut,
		Stall:    func(*testing.T) func() { return network.stall() },
		Truncate: func(*testing.T) { server.truncate() },
		Recreate: func(*testing.T) { server.deleteStream() },
	}
}
