package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/kubecdc/kubecdc/internal/signal"
)

const (
	// signalPause is between two looks at the topic.
	signalPause = time.Second
	// signalsAtOnce is how many messages are taken between two pauses (I6): a flood of them costs little.
	signalsAtOnce = 1000
)

// SignalDesk does what signals ask for. One goroutine calls it.
type SignalDesk interface {
	// Follow does what the message asks for, or refuses it for good. What it does it saves together with the place
	// behind the message. After an error the message is not taken, and is given again after a pause.
	Follow(ctx context.Context, m *signal.Message) error
	// Tell sends what is to be told, and takes as told what was sent without an error.
	Tell(ctx context.Context, send func(values [][]byte) error) error
	// Save saves the place, behind which nothing was done.
	Save(place string) error
}

// SignalOptions configures Signals. All but Notifications are needed.
type SignalOptions struct {
	Sink          Options // of the sink; its Retry is told why the brokers cannot be talked to
	Topic         string
	Notifications string // the topic in which it is told what becomes of signals; "" is none
	Cluster       []byte // the key of notifications
	// Group is the group of consumers as which the brokers keep how far the signals were read. It belongs to one state.
	Group string
	Place string // that was saved; "" is none
	Desk  SignalDesk
	Heard func(error) // is told after each look that signals can be read, or why not
}

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

// Run hands signals to the desk until ctx ends.
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
		return s.options.Desk.Follow(ctx, m)
	})
	s.place = place
	if errors.Is(err, signal.ErrEnough) {
		err = nil
	}
	told := s.options.Desk.Tell(ctx, func(values [][]byte) error { return s.log.notify(ctx, s.options.Cluster, values) })
	return errors.Join(err, s.save(ctx), told)
}

// save makes sure that the place is known to the next life, and that it was read is known to a life with an earlier
// state.
func (s *Signals) save(ctx context.Context) error {
	if s.place == s.saved {
		return nil
	}
	if err := s.options.Desk.Save(s.place); err != nil {
		return err
	}
	s.saved = s.place
	return s.log.claim(ctx, s.place)
}

// Check says what keeps signals from being read, and notifications from being written. It changes nothing.
func (s *Signals) Check(ctx context.Context) error { return s.log.check(ctx) }
