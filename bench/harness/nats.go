package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/test/child"
)

// NATS is a nats-server in a process of its own, with its streams on disk, and a connection to it.
type NATS struct {
	URL     string
	process *child.Process
	conn    *natsgo.Conn
}

// StartNATS builds nats-server, of the version that the module requires, and starts it in the directory. Kill ends it.
func StartNATS(ctx context.Context, dir string) (*NATS, error) {
	binary, err := buildInto(ctx, ".", "nats-server", "github.com/nats-io/nats-server/v2")
	if err != nil {
		return nil, err
	}
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	address := free.Addr().String()
	free.Close()
	host, port, _ := net.SplitHostPort(address)
	n := &NATS{URL: "nats://" + address}
	n.process, err = child.Start(exec.Command(binary, "--addr", host, "--port", port, "--jetstream",
		"--store_dir", filepath.Join(dir, "jetstream"), "--log", filepath.Join(dir, "nats-server.log")))
	if err != nil {
		return nil, fmt.Errorf("start nats-server: %w", err)
	}
	soon, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("nobody listens after 30 s"))
	defer cancel()
	n.conn, err = natsgo.Connect(n.URL, natsgo.RetryOnFailedConnect(true), natsgo.ReconnectWait(20*time.Millisecond), natsgo.MaxReconnects(-1))
	if err == nil {
		err = n.conn.FlushWithContext(soon)
	}
	if err != nil {
		n.Kill()
		return nil, fmt.Errorf("start nats-server: %w", errors.Join(err, context.Cause(soon)))
	}
	return n, nil
}

// Consume takes the messages of a stream in order, once the writer has made it.
func (n *NATS) Consume(
	ctx context.Context, writer *Exporter, stream string, settings jetstream.OrderedConsumerConfig, take func(jetstream.Msg),
) error {
	js, err := jetstream.New(n.conn)
	if err != nil {
		return fmt.Errorf("use JetStream: %w", err)
	}
	var consumer jetstream.Consumer
	err = writer.Await(ctx, 50*time.Millisecond, func() (made bool, err error) {
		if consumer, err = js.OrderedConsumer(ctx, stream, settings); errors.Is(err, jetstream.ErrStreamNotFound) {
			return false, nil
		}
		return true, err
	})
	if err == nil {
		_, err = consumer.Consume(take)
	}
	if err != nil {
		return fmt.Errorf("follow stream %s: %w", stream, err)
	}
	return nil
}

// Kill ends it as a crash does, and what is consumed with it.
func (n *NATS) Kill() {
	if n.conn != nil {
		n.conn.Close()
	}
	n.process.Kill()
}
