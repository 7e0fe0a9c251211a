package main

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/bench/harness"
)

// stream is what the sink writes to.
type stream struct {
	*harness.Stream

	mu    sync.Mutex // guards the following
	since time.Time
	first time.Time // when the first message came after since; zero is none yet
}

// follow notes when messages come from now on.
func (s *stream) follow(ctx context.Context) error {
	settings := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverNewPolicy, HeadersOnly: true}
	return s.Consume(ctx, settings, func(m jetstream.Msg) {
		if about, err := m.Metadata(); err == nil {
			s.note(about.Timestamp)
		}
	})
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
