package kafka

import (
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// errUnsigned says that the right to write was taken, and that whoever took it has not shown that it lives.
var errUnsigned = errors.New("a request has taken the transactional id, and nobody uses it: either the request came late, " +
	"or another exporter is starting, or the transaction timed out")

var (
	errNothingRead  = errors.New("a fetch before the end of the log brought nothing")
	errUnreplicated = errors.New("the leader has records that are not replicated yet: if that lasts, start the brokers that are down")
	errThrottled    = errors.New("the quota of this client is used up, and the broker asks to wait: if that lasts, raise producer_byte_rate of the user or of client id kubecdc")
	errUndecided    = errors.New("the last transaction has no marker yet: if that lasts, start the brokers that are down")
)

// reopenError ends a Write that only Open can go on from.
type reopenError struct{ error }

func (e *reopenError) Unwrap() error { return e.error }

func reopen(format string, args ...any) error { return &reopenError{fmt.Errorf(format, args...)} }

// topicError is what of this package's own rules speaks against one topic.
type topicError struct{ error }

func (e *topicError) Unwrap() error { return e.error }

// topicPermanent is permanent, and about one topic.
func topicPermanent(format string, args ...any) error {
	return &sink.PermanentError{Err: &topicError{fmt.Errorf(format, args...)}}
}

// missing is about a topic that is not there, and that the exporter may not make.
func missing(verb, topic string) error {
	return topicPermanent("%s topic %s: it does not exist: create it, or let the exporter do it with kafka.create", verb, topic)
}

// refusesTopic says whether the error is about one topic, and only a person can mend it.
func refusesTopic(err error) bool {
	switch wire.Code(err) {
	case kerr.InvalidTopicException.Code, kerr.TopicAuthorizationFailed.Code, kerr.InvalidPartitions.Code, kerr.InvalidReplicationFactor.Code, kerr.InvalidReplicaAssignment.Code, kerr.InvalidConfig.Code, kerr.PolicyViolation.Code:
		return true
	}
	return errors.As(err, new(*topicError))
}

// refused says whether the broker will never take the batch, and so has not taken it: the next one has its sequence.
func refused(err error) bool {
	if err == nil || decided(err) {
		return false
	}
	class := wire.Classify(err)
	return class == wire.TooLarge || class == wire.Invalid
}

// decided says whether the error is one of this package's, for which there is no further attempt.
func decided(err error) bool {
	return errors.As(err, new(*sink.PermanentError)) || errors.As(err, new(*reopenError))
}

func newBackOff() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(5*time.Millisecond), backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(0.5), backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(0))
}

// reason is a short word for an error, for a metric's label.
func reason(err error) string {
	switch {
	case errors.Is(err, errUnreplicated):
		return "unreplicated"
	case errors.Is(err, errUndecided):
		return "undecided"
	case errors.Is(err, errUnsigned):
		return "unsigned"
	}
	return wire.Reason(err)
}

// newKeys refuses to write under other keys than before.
func newKeys(topic, changed string) error {
	return sink.Permanent("open topic %s: the topic is compacted, and %s: it would keep objects as they were for ever: "+
		"change that back, or give the sink another name and other topics, or start once with --accept-new-keys, which ends the old keys and sends everything again",
		topic, changed)
}
