package listener

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// patience is how long a sink that failed is left alone before it is opened again. That it opens proves nothing, so
// the waits grow until it has taken a batch. The zero value is ready for use.
type patience struct {
	waits *backoff.ExponentialBackOff // nil: it did not fail since
}

// wait returns when the sink may be opened again, at once after the first failure, or with ctx's error.
func (p *patience) wait(ctx context.Context) error {
	if p.waits == nil {
		p.waits = RetryForever()
		return ctx.Err()
	}
	timer := time.NewTimer(p.waits.NextBackOff())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// reset notes that the sink has taken a batch.
func (p *patience) reset() { p.waits = nil }

// IsPermanent says whether only a person can help.
func IsPermanent(err error) bool {
	return errors.As(err, new(*sink.PermanentError))
}

// RetryForever waits 0.1 s at first and 10 s at most.
func RetryForever() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(10*time.Second),
		backoff.WithMaxElapsedTime(0),
	)
}

// retrySeldom waits a minute at first and ten at most.
func retrySeldom() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(time.Minute), backoff.WithRandomizationFactor(0.1), backoff.WithMultiplier(2),
		backoff.WithMaxInterval(10*time.Minute), backoff.WithMaxElapsedTime(0),
	)
}

// sinkError is a failure of the sink's, which it could not mend by itself.
type sinkError struct{ error }

// Stops are the sinks that are stopped at the moment.
type Stops struct {
	mu     sync.Mutex
	causes []error // by listener; nil is one that goes on
}

// NewStops are those of so many sinks, of which none is stopped.
func NewStops(sinks int) *Stops { return &Stops{causes: make([]error, sinks)} }

// endError ends the run: every sink is stopped, or one was opened too early.
type endError struct{ error }

func (e *endError) Unwrap() error { return e.error }

// IsLate says whether the run has ended since a sink was opened too early. Another run begins where this one has saved.
func IsLate(err error) bool {
	return errors.As(err, new(*sink.LateError))
}

// IsEnd is the error if it ends the run, and nil for one that only says that the run ends.
func IsEnd(err error) error {
	if end := new(endError); errors.As(err, &end) {
		return end
	}
	return nil
}

// Stop notes why the listener's sink is stopped. It returns an *endError with all causes where no other is left.
func (s *Stops) Stop(listener int, cause error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.causes[listener] = cause
	for _, cause := range s.causes {
		if cause == nil {
			return nil
		}
	}
	return &endError{errors.Join(s.causes...)}
}

// Resume notes that the listener's sink is open again.
func (s *Stops) Resume(listener int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.causes[listener] = nil
}
