package listener

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// patience is how long a sink that failed is left alone before it is opened again. That it opens proves nothing, so the
// waits grow until the sink has taken a batch. The zero value is ready for use.
type patience struct {
	waits *backoff.ExponentialBackOff // nil until it fails
}

// wait returns when the sink may be opened again, or with ctx's error. It returns at once after the first failure.
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

// sinkError is a failure of the sink that it could not mend by itself.
type sinkError struct{ error }

// Stops are the sinks that are stopped, with their causes.
type Stops struct {
	mu     sync.Mutex
	causes []error // by listener; nil if its sink is not stopped
}

// NewStops returns the Stops of so many sinks, none of which is stopped.
func NewStops(sinks int) *Stops { return &Stops{causes: make([]error, sinks)} }

// endError ends the run: every sink is stopped, or one was opened too early.
type endError struct{ error }

func (e *endError) Unwrap() error { return e.error }

// IsLate says whether the run has ended because a sink was opened too early. The next run begins where this one has
// saved.
func IsLate(err error) bool {
	return errors.As(err, new(*sink.LateError))
}

// IsEnd returns the error that ends the run, or nil if err does not contain one.
func IsEnd(err error) error {
	if end := new(endError); errors.As(err, &end) {
		return end
	}
	return nil
}

// Stop notes why the listener's sink is stopped. It returns an *endError with all causes if every sink is stopped.
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
