package nats

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/authority"
)

// TestI3CutsUnderTLS and in a websocket: there the socket carries something else than the protocol.
func TestI3CutsUnderTLS(t *testing.T) {
	ca := authority.New(t, t.TempDir(), "test CA")
	certificate := sink.TLS{CAFile: ca.File}
	certificate.CertFile, certificate.KeyFile = ca.Pair("client")
	for name, test := range map[string]struct {
		server func(*server.Options)
		tls    *sink.TLS
	}{
		"tls":       {trusting(ca, false), &certificate},
		"tls first": {trusting(ca, true), &certificate},
		"websocket": {func(o *server.Options) {
			o.Websocket = server.WebsocketOpts{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoTLS: true}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, test.server)
			target := s.Addr().String()
			if name == "websocket" {
				target = strings.TrimPrefix(s.WebsocketURL(), "ws://")
			}
			network := startProxy(t, target)
			options := s.options()
			options.TLS, options.TLSFirst, options.URL = test.tls, name == "tls first", network.url()
			if name == "websocket" {
				options.URL = strings.Replace(network.url(), "nats://", "ws://", 1)
			}
			open := openSink(t, options)
			cut := network.cutOften(3)
			maker := newMaker()
			var want []string
			for running := true; running || len(want) < 1000; {
				batch := maker.Batch(200)
				want = append(want, idsOf(batch)...)
				write(t, open, batch)
				select {
				case <-cut:
					running = false
				default:
				}
			}
			wantIDs(t, s.ids(options.Login.Options()...), want)
		})
	}
}

// TestI4TooLargeBehindOthers: a limit that was lowered when the messages had been looked at. What comes before the
// message is stored, and the message is named.
func TestI4TooLargeBehindOthers(t *testing.T) {
	s, open := opened(t)
	batch := newMaker().Batch(5)
	batch[3].Value = make([]byte, 1<<20+1)
	wantRejected(t, open.publish(within(t), batch), 3, "too_large")
	wantIDs(t, s.ids(), idsOf(batch[:3]))
	batch = newMaker().Batch(2)
	write(t, open, batch)
}

// TestI3SocketThatTakesNothing: of a message that went half the rest is never sent, and nothing is sent after it.
func TestI3SocketThatTakesNothing(t *testing.T) {
	s := startServer(t, func(o *server.Options) { o.MaxPayload = 32 << 20 })
	network, options := startProxy(t, s.Addr().String()), s.options()
	options.URL = network.url()
	var reasons []string
	options.Retry = func(reason string, _ error) {
		reasons = append(reasons, reason)
		network.set(false)
	}
	publisher := newSink(t, options)
	publisher.tuning.Flush, publisher.tuning.bytes = 500*time.Millisecond, 64<<20
	publisher.tuning.Reply = 20 * time.Second // a socket that goes on with the wrong bytes is silent for so long
	openAt(t, publisher, "")
	defer network.stall()()
	batch := benchBatch(30<<20, 1000, new(int))[:1] // more than all buffers on the way
	write(t, publisher, batch)
	if slices.Contains(reasons, "timeout") || len(reasons) == 0 {
		t.Fatalf("got reasons %q: the socket went on", reasons)
	}
	wantIDs(t, s.ids(), idsOf(batch))
}
