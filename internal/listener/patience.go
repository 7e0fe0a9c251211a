package listener

import (
	"context"
	"errors"
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
	var permanent *sink.PermanentError
	return errors.As(err, &permanent)
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

// isFenced says whether another writer has taken the sink over.
func isFenced(err error) bool {
	var permanent *sink.PermanentError
	return errors.As(err, &permanent) && permanent.Fenced
}

// sinkError is a failure of the sink's, which it could not mend by itself.
type sinkError struct{ error }
