package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/test/matrix"
	"github.com/kubecdc/kubecdc/test/natsserver"
)

// The test binary runs a NATS server instead of tests where these variables are set.
const (
	brokerDirVariable  = "E2E_BROKER_DIR"
	brokerPortVariable = "E2E_BROKER_PORT"
)

// maxPayload of a message in bytes.
const maxPayload = 8 << 20

// serveBroker is the NATS server's process; it returns the exit code.
func serveBroker(dir, port string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	number, err := strconv.Atoi(port)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	server, err := natsserver.Run(dir, func(o *natsserver.Options) { o.Port, o.MaxPayload = number, maxPayload })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	<-ctx.Done()
	server.Stop()
	return 0
}

// streamName is the JetStream stream that the exporter writes.
const streamName = "K8S"

// broker is a NATS server in a process of its own, always on the same port and directory.
type broker struct {
	t       *testing.T
	port    int
	dir     string
	process *process
}

// newBroker starts a server.
func newBroker(t *testing.T, dir string) *broker {
	t.Helper()
	b := &broker{t: t, port: freePort(t), dir: dir}
	b.start()
	return b
}

// start returns when the server takes connections.
func (b *broker) start() {
	b.t.Helper()
	b.process = b.run()
	eventually(b.t, patience, "the NATS server takes connections", func() bool {
		if !b.process.Running() {
			b.t.Fatalf("the NATS server ended: see %s", b.dir)
		}
		conn, err := net.Dial("tcp", b.address())
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
}

// run is this test binary, or the server of another version.
func (b *broker) run() *process {
	b.t.Helper()
	port, streams, log := strconv.Itoa(b.port), filepath.Join(b.dir, "jetstream"), filepath.Join(b.dir, "broker.log")
	other, err := matrix.NATSServer(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	if other == "" {
		return startProcess(b.t, log, []string{brokerDirVariable + "=" + streams, brokerPortVariable + "=" + port}, os.Args[0])
	}
	config := filepath.Join(b.dir, "broker.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, "max_payload: %d\n", maxPayload), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return startProcess(b.t, log, nil, other, "--config", config, "--addr", "127.0.0.1", "--port", port, "--jetstream", "--store_dir", streams)
}

func (b *broker) kill() { b.process.Kill() }

func (b *broker) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port)) }

// streamLog reads the stream with a connection and consumers of its own.
type streamLog struct {
	nc   *nats.Conn
	js   jetstream.JetStream
	name string
}

// open connects to the server; the connection ends with the test.
func (b *broker) open() *streamLog {
	b.t.Helper()
	return b.openStream(streamName)
}

// openStream is open of another stream.
func (b *broker) openStream(name string) *streamLog {
	b.t.Helper()
	log := openStream(b.t, b.address())
	log.name = name
	return log
}

// openStream connects to one of the servers; the connection ends with the test.
func openStream(t *testing.T, addresses ...string) *streamLog {
	t.Helper()
	nc, err := nats.Connect("nats://"+strings.Join(addresses, ",nats://"), nats.Timeout(patience), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	// less than the tests' own, since servers are killed
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return &streamLog{nc: nc, js: js, name: streamName}
}

// read returns the events from the sequence on, up to the stream's present end, or with an error those that came.
func (s *streamLog) read(ctx context.Context, first uint64) ([]event, error) {
	stream, err := s.js.Stream(ctx, s.name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up stream: %w", err)
	}
	last := stream.CachedInfo().State.LastSeq
	if last < first {
		return nil, nil
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: first,
		InactiveThreshold: 20 * time.Second, // many readings a second would leave more than a stream may have
	})
	if err != nil {
		return nil, fmt.Errorf("read stream: %w", err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		return nil, fmt.Errorf("read stream: %w", err)
	}
	defer messages.Stop()
	return take(ctx, messages, first, last)
}

// take expects every sequence from first to last: nobody deletes from the stream. What it took before it was cut short
// comes with the error.
func take(ctx context.Context, messages jetstream.MessagesContext, first, last uint64) ([]event, error) {
	var events []event
	for seq := first; seq <= last; seq++ {
		message, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return events, fmt.Errorf("read message %d of %d: %w", seq, last, err)
		}
		meta, err := message.Metadata()
		if err != nil {
			return nil, fmt.Errorf("read message %d of %d: %w", seq, last, err)
		}
		if meta.Sequence.Stream != seq {
			return nil, fmt.Errorf("read message %d of %d: the stream goes on with %d", seq, last, meta.Sequence.Stream)
		}
		found, err := parseEvent(message.Data())
		if err != nil {
			return nil, fmt.Errorf("read message %d of %d: %w", seq, last, err)
		}
		found.place = int(seq)
		found.header, found.routed = message.Headers().Get("kubecdc-id"), message.Subject()
		found.own = message.Headers().Get(ownHeader)
		events = append(events, found)
	}
	return events, nil
}
