package nats

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/sinktest"
)

// TestI10HeadersHaveNoLineBreaks, after which another header would begin.
func TestI10HeadersHaveNoLineBreaks(t *testing.T) {
	s := startServer(t)
	batch := newMaker().Batch(3)
	batch[1].ResourceVersion = "1\r\nNats-Rollup: all"
	batch[1].Headers = []sink.Header{{Name: "of-this-one", Value: "a"}, {Name: "twice", Value: "b"}, {Name: "twice", Value: "c"}}
	write(t, openSink(t, s.options()), batch)
	stored := s.stored()
	if len(stored) != 3 || len(stored[1].Headers) != 7+4 || len(stored[2].Headers) != 1+4+4 { // with four of the server's own
		t.Fatalf("got %d messages, %+v and %+v", len(stored), stored[1].Headers, stored[2].Headers)
	}
	for _, want := range append(batch[1].Headers, sink.Header{Name: sink.HeaderResourceVersion, Value: "1  Nats-Rollup: all"}) {
		if !slices.Contains(stored[1].Headers, want) {
			t.Errorf("%+v is missing in %+v", want, stored[1].Headers)
		}
	}
}

// TestI3ResetUnderTLS and through a websocket: there the socket carries something else than the protocol.
func TestI3ResetUnderTLS(t *testing.T) {
	ca := newAuthority(t)
	certificate := TLS{CAFile: ca.file, ServerName: "nats.test"}
	certificate.CertFile, certificate.KeyFile = ca.sign()
	first := certificate
	first.First = true
	for name, test := range map[string]struct {
		server func(*server.Options)
		tls    *TLS
	}{
		"tls":       {ca.server(false), &certificate},
		"tls first": {ca.server(true), &first},
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
			options.TLS, options.URL = test.tls, network.url()
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
	s := startServer(t)
	open := openSink(t, s.options())
	batch := newMaker().Batch(5)
	batch[3].Value = make([]byte, 1<<20+1)
	var rejected *sink.RejectedError
	err := open.publish(within(t), batch)
	if !errors.As(err, &rejected) || rejected.Index != 3 || rejected.Reason != "too_large" {
		t.Fatalf("got %v", err)
	}
	wantIDs(t, s.ids(), idsOf(batch[:3]))
	batch = newMaker().Batch(2)
	write(t, open, batch)
}

// TestI3SocketThatTakesNothing: of a message that went half the rest is never sent, and nothing is sent after it.
func TestI3SocketThatTakesNothing(t *testing.T) {
	s := startServer(t, func(o *server.Options) { o.MaxPayload = 40 << 20 })
	network := startProxy(t, s.Addr().String())
	var reasons []string
	options := s.options()
	options.URL = network.url()
	options.Retry = func(reason string, _ error) {
		reasons = append(reasons, reason)
		network.set(false)
	}
	publisher := newSink(t, options)
	publisher.tuning.flush, publisher.tuning.bytes = 500*time.Millisecond, 64<<20
	publisher.tuning.reply = 20 * time.Second // a socket that goes on with the wrong bytes is silent for so long
	if _, err := sinktest.Open(within(t), publisher, ""); err != nil {
		t.Fatal(err)
	}
	defer network.stall()()
	batch := benchBatch(30<<20, 3, new(int))[:3] // each is more than all buffers on the way
	write(t, publisher, batch)
	if slices.Contains(reasons, "timeout") || len(reasons) == 0 {
		t.Fatalf("got reasons %q: the socket went on", reasons)
	}
	wantIDs(t, s.ids(), idsOf(batch))
}
