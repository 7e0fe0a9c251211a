package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// A sink that fails for good, with a *sink.PermanentError, stops alone: its queue works on as it does for a sink that
// is away, and it is opened again now and then, since somebody may have mended what is wrong. When no sink is left the
// run ends.

// cause is why the listener's sink is stopped.
func (s *stops) cause(listener int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.causes[listener]
}

// stops are the sinks that are stopped at the moment.
type stops struct {
	mu     sync.Mutex
	causes []error // by listener; nil is one that goes on
}

// endError ends the run: every sink is stopped.
type endError struct{ error }

func (e *endError) Unwrap() error { return e.error }

// isEnd is the error if it ends the run, and nil for one that only says that the run ends.
func isEnd(err error) error {
	if end := new(endError); errors.As(err, &end) {
		return end
	}
	return nil
}

// stop notes why the listener's sink is stopped. It returns an *endError with all causes where no other is left.
func (s *stops) stop(listener int, cause error) error {
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

func (s *stops) resume(listener int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.causes[listener] = nil
}

// retrySeldom waits a minute at first and ten at most.
func retrySeldom() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(time.Minute), backoff.WithRandomizationFactor(0.1), backoff.WithMultiplier(2),
		backoff.WithMaxInterval(10*time.Minute), backoff.WithMaxElapsedTime(0),
	)
}

// mend opens the sink again after the error, however long that takes: at once what may be well by itself, and seldom
// what only a person can mend.
func (l *listener) mend(ctx context.Context, err error) error {
	for {
		if isPermanent(err) {
			if err := l.halt(ctx, fmt.Errorf("deliver to sink %s: %w", l.Name, err)); err != nil {
				return err
			}
		} else {
			l.observer.Failed(l.Name, err)
		}
		if err = l.reopen(ctx); err == nil {
			return l.goOn(ctx)
		}
		if !isPermanent(err) {
			return err
		}
	}
}

// halt stops the sink and returns when it is to be tried again. It returns an error where no sink is left, or the run
// ends, and errLeft where the sink was open once and has left the line.
func (l *listener) halt(ctx context.Context, cause error) error {
	l.observer.Stopped(l.Name, cause)
	if err := l.stops.stop(l.index, cause); err != nil {
		return err
	}
	if !l.setHalted(true) {
		return cause
	}
	again, look := time.NewTimer(l.seldom.NextBackOff()), time.NewTicker(10*time.Second)
	defer again.Stop()
	defer look.Stop()
	left := l.gone
	if !l.joined {
		left = nil
	}
	if isFenced(cause) {
		again.Stop()
	}
	for {
		select {
		case <-again.C:
			return nil
		case <-look.C:
			l.burdensByAge()
		case <-left:
			return errLeft
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// goOn notes that the sink is open again. It returns errLeft where the sink has left meanwhile.
func (l *listener) goOn(ctx context.Context) error {
	l.mu.Lock()
	l.halted = l.leaving || l.away && l.joined
	halted, left := l.halted, l.gone
	l.mu.Unlock()
	if halted {
		select {
		case <-left:
			return errLeft
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	l.stops.resume(l.index)
	return nil
}

// setHalted notes whether the sink is stopped. It is false where the run ends already, and nothing is spooled: nobody
// waits then.
func (l *listener) setHalted(halted bool) (goesOn bool) {
	l.use(func(b *fifo.Backlog) {
		l.halted = halted
		if b.IsFinished() && b.StartSpill() {
			l.seat.Wake()
		}
		goesOn = !b.IsFinished() || b.CanSpill()
	})
	return goesOn
}

// isFenced says whether another writer has taken the sink over.
func isFenced(err error) bool {
	var permanent *sink.PermanentError
	return errors.As(err, &permanent) && permanent.Fenced
}
