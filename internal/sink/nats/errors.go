package nats

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

var (
	errLeaderless = errors.New("it has no leader at the moment")
	// an acknowledgement for another place than the message asked for
	errMisplaced = errors.New("message stored at another sequence than expected")
	errUnsettled = errors.New("messages arrived while the stream's end was read")
	// The server says so with an acknowledgement of what it stored before.
	errGap   = errors.New("the server received the batch with a gap")
	errEnded = errors.New("the server ended the batch early")
)

// The codes of the server's errors that lead somewhere else than to another attempt, or to a name of their own, and
// that the library has no name for. The server's errors.json has them all.
const (
	codeAccountResources jetstream.ErrorCode = 10002
	codeUnavailable      jetstream.ErrorCode = 10008
	codeInsufficient     jetstream.ErrorCode = 10023
	codeMaxStreams       jetstream.ErrorCode = 10027
	codeMemory           jetstream.ErrorCode = 10028
	codeStorage          jetstream.ErrorCode = 10047
	codeStreamConfig     jetstream.ErrorCode = 10052
	codeSequenceMismatch jetstream.ErrorCode = 10063
	codeOverlap          jetstream.ErrorCode = 10065
	codeReplicas         jetstream.ErrorCode = 10074
	codeStoreFailed      jetstream.ErrorCode = 10077
	codeHeaderTooLarge   jetstream.ErrorCode = 10097
	codeSealed           jetstream.ErrorCode = 10109
	codeMaxBytesRequired jetstream.ErrorCode = 10113
	codeNoLimits         jetstream.ErrorCode = 10120
	codeMaxBytesExceeded jetstream.ErrorCode = 10122
	codeTooManyRequests  jetstream.ErrorCode = 10167
	codeUnknownBatch     jetstream.ErrorCode = 10208
	codeTooManyBatches   jetstream.ErrorCode = 10211
)

func codeOf(err error) jetstream.ErrorCode {
	if api, is := errors.AsType[*jetstream.APIError](err); is {
		return api.ErrorCode
	}
	return 0
}

// reason is the short word for an error that is worth another attempt.
func reason(err error) string {
	switch codeOf(err) {
	case jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant, codeSequenceMismatch, codeUnknownBatch:
		return "sequence"
	case codeAccountResources, codeInsufficient, codeMemory, codeStorage, codeStoreFailed:
		return "limits"
	case codeTooManyRequests, codeTooManyBatches:
		return "busy"
	case 0:
	default:
		return "refused"
	}
	switch {
	case errors.Is(err, conn.ErrSilent), errors.Is(err, context.DeadlineExceeded), errors.Is(err, natsgo.ErrTimeout):
		return "timeout"
	case errors.Is(err, natsgo.ErrNoResponders):
		return "no_responders"
	case errors.Is(err, errLeaderless):
		return "no_leader"
	case errors.Is(err, errMisplaced), errors.Is(err, errUnsettled), errors.Is(err, errGap), errors.Is(err, errEnded):
		return "sequence"
	}
	return "disconnected"
}

// early says whether an error may be that the servers have no leader yet.
func early(err error) bool {
	return errors.Is(err, natsgo.ErrNoResponders) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, conn.ErrSilent) ||
		errors.Is(err, errLeaderless) || codeOf(err) == codeUnavailable
}

// tooLarge says whether the server will never take the message for its size.
func tooLarge(err error) bool {
	switch codeOf(err) {
	case jetstream.JSErrCodeStreamMessageExceedsMaximum, codeHeaderTooLarge:
		return true
	case codeStoreFailed: // its text is all that tells this from a full stream
		return conn.Detail(err) == "message too large"
	}
	return errors.Is(err, natsgo.ErrMaxPayload)
}

func newBackOff() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(20*time.Millisecond), backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(0.5), backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0))
}
