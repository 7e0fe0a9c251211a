package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// The codes of Kafka's errors (org.apache.kafka.common.protocol.Errors) that mean something else here than
// wire.Classify can know.
const (
	codeUnknownTopic       = 3
	codeOffsetOutOfRange   = 1
	codeNoCoordinator      = 15
	codeInvalidTopic       = 17
	codeTopicForbidden     = 29
	codeNoProducer         = 31 // CLUSTER_AUTHORIZATION_FAILED
	codeInvalidPartitions  = 37
	codeInvalidReplication = 38
	codeInvalidAssignment  = 39
	codeInvalidConfig      = 40
	codePolicy             = 44 // POLICY_VIOLATION
	codeOutOfOrder         = 45
	codeDuplicate          = 46
	codeUnknownProducer    = 59
	codeProducerMapping    = 49
)

// reopenError ends a Write that only Open can go on from.
type reopenError struct{ err error }

func (e *reopenError) Error() string { return e.err.Error() }
func (e *reopenError) Unwrap() error { return e.err }

func reopen(format string, args ...any) error { return &reopenError{fmt.Errorf(format, args...)} }

func permanent(format string, args ...any) error {
	return &sink.PermanentError{Err: fmt.Errorf(format, args...)}
}

// verdict makes a PermanentError of what only a person can mend, with what to do.
func verdict(err error) error {
	if decided(err) || wire.Classify(err) != wire.Fatal {
		return err
	}
	return wire.Explain(err)
}

// decided says whether the error is one of this package's, for which there is no further attempt.
func decided(err error) bool {
	var permanent *sink.PermanentError
	var rejected *sink.RejectedError
	var again *reopenError
	return errors.As(err, &permanent) || errors.As(err, &rejected) || errors.As(err, &again)
}

func newBackOff() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(5*time.Millisecond), backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(0.5), backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(0))
}

// pause waits, until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// ended is the error of a call whose context has ended.
func ended(ctx context.Context, verb string, last error) error {
	switch over := ctx.Err(); {
	case last == nil, errors.Is(last, over):
		return fmt.Errorf("%s: %w", verb, over)
	default:
		return fmt.Errorf("%s: %w: the last attempt failed: %w", verb, over, last)
	}
}

// persist makes one attempt after the other until there is no error, or none that another attempt can mend, or ctx
// ends.
func (s *Sink) persist(ctx context.Context, verb string, attempt func(context.Context) error) error {
	wait := newBackOff()
	for {
		if ctx.Err() != nil {
			return ended(ctx, verb, nil)
		}
		err := s.lingering(ctx, attempt)
		if err == nil {
			return nil
		}
		if class := wire.Classify(err); decided(err) || class != wire.Retriable {
			return verdict(err)
		}
		if ctx.Err() != nil {
			return ended(ctx, verb, err)
		}
		s.again(err)
		pause(ctx, wait.NextBackOff())
	}
}

// lingering gives an attempt that is under way when ctx ends a moment to end by itself: what comes of it is then known,
// and need not be found out.
func (s *Sink) lingering(ctx context.Context, attempt func(context.Context) error) error {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(s.tuning.grace, cancel) })
	defer stop()
	return attempt(late)
}

// again tells of an error, and of what may mend it, before the next attempt, and makes the wire look for the brokers
// anew.
func (s *Sink) again(err error) {
	s.cluster.Refresh()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options.Retry(reason(err), wire.Explain(err))
}

// reason is a short word for an error, for a metric's label.
func reason(err error) string {
	switch {
	case errors.Is(err, errUnreplicated):
		return "unreplicated"
	case errors.Is(err, errUndecided):
		return "undecided"
	}
	return wire.Reason(err)
}
