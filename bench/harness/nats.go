package harness

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
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
	port, err := child.FreePort()
	if err != nil {
		return nil, err
	}
	n := &NATS{URL: "nats://" + child.Address(port)}
	n.process, err = child.Start(exec.Command(binary, "--addr", "127.0.0.1", "--port", strconv.Itoa(port), "--jetstream",
		"--store_dir", filepath.Join(dir, "jetstream"), "--log", filepath.Join(dir, "nats-server.log")))
	if err != nil {
		return nil, fmt.Errorf("start nats-server: %w", err)
	}
	if err = n.process.AwaitListener(ctx, port); err == nil {
		n.conn, err = natsgo.Connect(n.URL)
	}
	if err != nil {
		n.Kill()
		return nil, fmt.Errorf("start nats-server: %w", err)
	}
	return n, nil
}

// Consume takes the messages of a stream in order, once the writer has made it.
func (n *NATS) Consume(
	ctx context.Context, writer *Exporter, stream string,
	settings jetstream.OrderedConsumerConfig, take func(jetstream.Msg),
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
