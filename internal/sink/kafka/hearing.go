package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/kubecdc/kubecdc/internal/sink/signal"
)

const (
	// signalPause is between two looks at the topic.
	signalPause = time.Second
	// signalsAtOnce is how many messages are taken between two pauses (I6): a flood of them costs little.
	signalsAtOnce = 1000
)

// Signals are those that a topic has.
type Signals struct {
	log     *signalLog
	options *SignalOptions
	place   string // until where messages were taken
	saved   string // of that
}

// NewSignals checks the options, and connects to nobody.
func NewSignals(options SignalOptions) (*Signals, error) {
	log, err := newSignalLog(&options)
	if err != nil {
		return nil, err
	}
	return &Signals{log: log, options: &options, place: options.Place, saved: options.Place}, nil
}

// Run hands signals to the handler until ctx ends.
func (s *Signals) Run(ctx context.Context) {
	defer s.log.disconnect()
	wait := backoff.NewExponentialBackOff(backoff.WithInitialInterval(signalPause), backoff.WithMaxInterval(time.Minute), backoff.WithMaxElapsedTime(0))
	for {
		err := s.look(ctx)
		if ctx.Err() != nil {
			return
		}
		s.options.Heard(err)
		pause := signalPause
		if err == nil {
			wait.Reset()
		} else {
			pause = wait.NextBackOff()
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// look takes what is there, within limits, and tells what is to be told.
func (s *Signals) look(ctx context.Context) error {
	left := signalsAtOnce
	place, err := s.log.read(ctx, s.place, func(m *signal.Message) error {
		if left--; left < 0 {
			return signal.ErrEnough
		}
		return s.options.Handler.Follow(ctx, m)
	})
	s.place = place
	if errors.Is(err, signal.ErrEnough) {
		err = nil
	}
	told := s.options.Handler.Tell(ctx, func(values [][]byte) error { return s.log.notify(ctx, s.options.Cluster, values) })
	return errors.Join(err, s.save(ctx), told)
}

// save makes sure that the place is known to the next life, and that it was read is known to a life with an earlier
// state.
func (s *Signals) save(ctx context.Context) error {
	if s.place == s.saved {
		return nil
	}
	if err := s.options.Handler.Save(s.place); err != nil {
		return err
	}
	s.saved = s.place
	return s.log.claim(ctx, s.place)
}

// Check says what keeps signals from being read, and notifications from being written. It changes nothing.
func (s *Signals) Check(ctx context.Context) error { return s.log.check(ctx) }
