package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// stream is what a sink writes to. It is not there before the exporter.
type stream struct {
	url, name string
	nc        *natsgo.Conn
	js        jetstream.JetStream

	mu    sync.Mutex // guards the following
	since time.Time
	first time.Time // when the first message came after since; zero is none yet
}

func (s *stream) connect() (err error) {
	if s.nc != nil {
		return nil
	}
	if s.nc, err = natsgo.Connect(s.url); err == nil {
		s.js, err = jetstream.New(s.nc)
	}
	return err
}

// count is how many messages it has.
func (s *stream) count(ctx context.Context) (int, error) {
	if err := s.connect(); err != nil {
		return 0, err
	}
	found, err := s.js.Stream(ctx, s.name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look at stream %s: %w", s.name, err)
	}
	return int(found.CachedInfo().State.LastSeq), nil
}

// remove removes it, and passes on the error with which it was used.
func (s *stream) remove(ctx context.Context, err error) error {
	if err == nil {
		err = s.js.DeleteStream(ctx, s.name)
	}
	if s.nc != nil {
		s.nc.Close()
	}
	return err
}

// follow notes when messages come from now on.
func (s *stream) follow(ctx context.Context) error {
	settings := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverNewPolicy, HeadersOnly: true}
	consumer, err := s.js.OrderedConsumer(ctx, s.name, settings)
	if err == nil {
		_, err = consumer.Consume(func(m jetstream.Msg) {
			if about, err := m.Metadata(); err == nil {
				s.note(about.Timestamp)
			}
		})
	}
	if err != nil {
		return fmt.Errorf("follow stream %s: %w", s.name, err)
	}
	return nil
}

func (s *stream) note(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first.IsZero() && at.After(s.since) {
		s.first = at
	}
}

// await begins to wait for the first message after a time.
func (s *stream) await(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since, s.first = since, time.Time{}
}

// came is when it came, false where it has not yet.
func (s *stream) came() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first, !s.first.IsZero()
}
