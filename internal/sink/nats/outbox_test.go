package nats

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/authority"
)

// FuzzOutbox: what the outbox writes itself and what the client library writes of the same message arrive as the same.
func FuzzOutbox(f *testing.F) {
	f.Add("k8s.a", "reply.1", "c/pods/a/x/u/1/added", "1", "content-type", "application/json", []byte("{}"), uint8(1))
	f.Add("k8s.a", "", "c/pods/a/x/u/1/deleted", "1\r\nNats-Rollup: all", "kubecdc-id", "twice", []byte{}, uint8(3))
	f.Add("k8s.a.b", "r", "\n", "\r\n", "a", "", []byte("\r\nPING\r\n"), uint8(9))
	f.Add("k8s.large", "r", "id", "2", "b", "c", make([]byte, 256<<10), uint8(2))
	s := startServer(f)
	open := openSink(f, s.options())
	options := s.options()
	options.Extra = []natsgo.Option{natsgo.SetCustomDialer(&net.Dialer{})} // not the sink's own
	library := openSink(f, options)
	if !open.conn.Outbox.Direct() || library.conn.Outbox.Direct() {
		f.Fatal("the outbox leaves everything to the library, or nothing")
	}
	consumer, err := natsgo.Connect(s.URL())
	noError(f, err)
	f.Cleanup(consumer.Close)
	messages := make(chan *natsgo.Msg, 64)
	if _, err := consumer.ChanSubscribe("k8s.>", messages); err != nil || consumer.Flush() != nil {
		f.Fatal(err)
	}
	next := func(t *testing.T) *natsgo.Msg {
		select {
		case m := <-messages:
			return m
		case <-within(t).Done():
			t.Fatal("a message did not arrive: ", open.conn.NC.LastError())
			return nil
		}
	}
	f.Fuzz(func(t *testing.T, subject, reply, id, version, name, value string, body []byte, n uint8) {
		headers := []sink.Header{{Name: name, Value: value}}
		m := sink.Message{ID: id, Op: "added", ResourceVersion: version, Destination: subject, Headers: headers, Value: body}
		if !validSubject(subject) || !strings.HasPrefix(subject, "k8s.") || reply != "" && !validSubject(reply) || checkHeaders(&m) != nil ||
			len(subject)+len(reply) > 1000 || headerSize(&m)+len(body) > 1<<19 || outerSpace(id) || outerSpace(version) {
			t.Skip()
		}
		var e envelope
		e.fill(&open.stream, &m, reply)
		e.expect(uint64(n))
		if err := library.conn.Outbox.Post(&e.Message); err != nil || library.conn.NC.Flush() != nil {
			t.Fatal(err)
		}
		want := next(t)
		for range n%8 + 1 {
			noError(t, open.conn.Outbox.Post(&e.Message))
		}
		noError(t, open.conn.Outbox.Flush())
		for range n%8 + 1 {
			got := next(t)
			if got.Subject != want.Subject || got.Reply != want.Reply || string(got.Data) != string(want.Data) ||
				!maps.EqualFunc(got.Header, want.Header, slices.Equal) {
				t.Fatalf("got  %q %q %q %q\nwant %q %q %q %q", got.Subject, got.Reply, got.Header, got.Data,
					want.Subject, want.Reply, want.Header, want.Data)
			}
		}
	})
}

// outerSpace is what the library cuts off, also where there is no line break.
func outerSpace(value string) bool {
	value = oneLine(value)
	return strings.Trim(value, " \t") != value
}

// TestI3LibraryWritesMeanwhile: what the client library sends comes between messages, never into one. It is the library
// that pings: a server that does so every few milliseconds may ping before it has answered the library's own first
// ping.
func TestI3LibraryWritesMeanwhile(t *testing.T) {
	eachMode(t, []string{inBatches, oneByOne}, func(t *testing.T, publish string) {
		s := startServer(t)
		options := s.options(publish)
		options.Extra = append(options.Extra, natsgo.PingInterval(5*time.Millisecond), natsgo.MaxPingsOutstanding(1<<20))
		open := openSink(t, options)
		stop, stopped := make(chan struct{}), make(chan error, 1)
		go func() {
			body := make([]byte, 3000)
			for {
				select {
				case <-stop:
					stopped <- nil
					return
				default:
				}
				if err := errors.Join(open.conn.NC.Publish("other", body), open.conn.NC.Flush()); err != nil {
					stopped <- err
					return
				}
			}
		}()
		var want []string
		for number := 0; number < 4*batchSize; {
			batch := benchBatch(2<<10, 50, &number)
			want = append(want, idsOf(batch)...)
			write(t, open, batch)
		}
		close(stop)
		noError(t, <-stopped)
		if !open.conn.Outbox.Direct() || open.conn.Generation() != 0 {
			t.Fatalf("the library sent, or the connection was lost %d times: %v", open.conn.Generation(), open.conn.NC.LastError())
		}
		wantIDs(t, s.ids(), want)
	})
}

// TestI3LibrarySendsUnderTLS and through a websocket: there the socket carries something else than the protocol.
func TestI3LibrarySendsUnderTLS(t *testing.T) {
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
		for _, publish := range []string{inBatches, oneByOne} {
			t.Run(name+"/"+publish, func(t *testing.T) {
				s := startServer(t, test.server)
				target := s.Addr().String()
				if name == "websocket" {
					target = strings.TrimPrefix(s.WebsocketURL(), "ws://")
				}
				network := startProxy(t, target)
				options := s.options(publish)
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
				if open.conn.Outbox.Direct() {
					t.Fatal("the outbox wrote into the socket itself")
				}
				wantIDs(t, s.ids(options.Login.Options()...), want)
			})
		}
	}
}

// TestI4TooLargeBehindOthers: a limit that was lowered when the messages had been looked at. What comes before the
// message is stored, and the message is named.
func TestI4TooLargeBehindOthers(t *testing.T) {
	eachMode(t, []string{inBatches, oneByOne}, func(t *testing.T, publish string) {
		s, open := opened(t, publish)
		batch := newMaker().Batch(5)
		batch[3].Value = make([]byte, 1<<20+1)
		wantRejected(t, open.publish(within(t), batch), 3, "too_large")
		wantIDs(t, s.ids(), idsOf(batch[:3]))
		batch = newMaker().Batch(2)
		write(t, open, batch)
	})
}

// TestOutboxAllocatesNothing for a message, once its memory is large enough.
func TestOutboxAllocatesNothing(t *testing.T) {
	_, open := opened(t)
	batch := benchBatch(1<<10, 50, new(int))
	var e envelope
	e.fill(&open.stream, &batch[0], "reply")
	most := testing.AllocsPerRun(10, func() {
		open.conn.ResetOutbox()
		for range 100 { // less than what is sent at once
			noError(t, open.conn.Outbox.Post(&e.Message))
		}
	})
	if most > 0 {
		t.Fatal(fmt.Sprint(most, " allocations for 100 messages"))
	}
}

// TestI3SocketThatTakesNothing: of a message that went half the rest is never sent, and nothing is sent after it.
func TestI3SocketThatTakesNothing(t *testing.T) {
	s, network, options := proxied(t, inBatches)
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
	batch := benchBatch(900<<10, 1000, new(int))[:30] // more than all buffers on the way
	write(t, publisher, batch)
	if slices.Contains(reasons, "timeout") || len(reasons) == 0 {
		t.Fatalf("got reasons %q: the socket went on", reasons)
	}
	wantIDs(t, s.ids(), idsOf(batch))
}
