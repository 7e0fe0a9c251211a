package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Stream is what a sink writes to. It is not there before the exporter.
type Stream struct {
	name string
	js   jetstream.JetStream
}

// OpenStream connects to the server. Close ends the connection.
func OpenStream(url, name string) (*Stream, error) {
	nc, err := natsgo.Connect(url)
	if err != nil {
		return nil, fmt.Errorf("connect to nats-server: %w", err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("use JetStream: %w", err)
	}
	return &Stream{name, js}, nil
}

// Close ends the connection, and with it what is consumed.
func (s *Stream) Close() { s.js.Conn().Close() }

// Count is how many messages it has.
func (s *Stream) Count(ctx context.Context) (int, error) {
	found, err := s.js.Stream(ctx, s.name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look up stream %s: %w", s.name, err)
	}
	return int(found.CachedInfo().State.Msgs), nil
}

// Await waits until the exporter has written so many messages.
func (s *Stream) Await(ctx context.Context, writer *Exporter, least int) error {
	return writer.Await(ctx, 50*time.Millisecond, func() (bool, error) {
		n, err := s.Count(ctx)
		return n >= least, err
	})
}

// Consume takes the messages in order, from the first one on unless the settings say otherwise.
func (s *Stream) Consume(ctx context.Context, settings jetstream.OrderedConsumerConfig, take func(jetstream.Msg)) error {
	consumer, err := s.js.OrderedConsumer(ctx, s.name, settings)
	if err == nil {
		_, err = consumer.Consume(take)
	}
	if err != nil {
		return fmt.Errorf("follow stream %s: %w", s.name, err)
	}
	return nil
}

// Remove removes it.
func (s *Stream) Remove(ctx context.Context) error {
	if err := s.js.DeleteStream(ctx, s.name); err != nil {
		return fmt.Errorf("remove stream %s: %w", s.name, err)
	}
	return nil
}
