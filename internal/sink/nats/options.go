package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// Options configures a sink. URL is needed, and Stream and Subjects, or KV.
type Options struct {
	URL  string // servers, separated by commas: "nats://a:4222,nats://b:4222"; also tls, ws and wss
	Name string // of the client, as the server shows it; "" is "kubecdc"

	Stream   string
	Subjects []string // what the stream must take; the stream's subjects, if the sink makes it
	Domain   string   // the JetStream domain; "" is that of the server
	// Judge tells records of other clusters; nil takes all for ours.
	Judge sink.Judge

	// KV is the name of a bucket, "" is none. With it, Stream is the bucket's and stays empty, and so does Subjects.
	KV      string
	History int // values that a key of a new bucket keeps; 0 is 1, 64 is the most

	// Whole refuses a bucket that forgets values: by their age, or at a limit.
	Whole bool

	// Uncompacted, where not "", is why what is written must not be in a stream that forgets the older messages of a
	// subject.
	Uncompacted string

	// For a stream that the sink makes. One that is there already keeps what it has.
	Storage    string        // "file" or "memory"; "" is "file"
	Replicas   int           // 0 is 1
	MaxAge     time.Duration // 0 is for ever
	MaxBytes   int64         // 0 is without limit
	DiscardNew bool          // at MaxBytes wait for room, instead of dropping the oldest messages

	Login

	Retry sink.RetryFunc  // nil is nobody
	Extra []natsgo.Option // for what has no field here
}

// Login is that of the connection.
type Login = conn.Login

// The values of Options.Storage.
const (
	StorageFile   = "file"
	StorageMemory = "memory"
)

// complete fills in the defaults, and checks what the configuration's own check cannot know or leaves to the sink. It
// reports all problems at once.
func (o *Options) complete() error {
	o.Name = cmp.Or(o.Name, "kubecdc")
	o.Replicas = cmp.Or(o.Replicas, 1)
	if o.Judge == nil {
		o.Judge = func(*sink.Stored) error { return nil }
	}
	if o.Retry == nil {
		o.Retry = func(string, error) {}
	}
	if o.KV != "" {
		o.Stream, o.Subjects, o.History = bucketStream+o.KV, []string{bucketSubject + o.KV + ".>"}, max(o.History, 1)
	}
	var problems []error
	if strings.ContainsAny(o.Domain, ".*> \t\r\n") {
		problems = append(problems, fmt.Errorf("nats.domain is %q: a domain has no dots, wildcards and spaces", o.Domain))
	}
	if o.MaxAge > 0 && o.MaxAge < time.Second {
		problems = append(problems, fmt.Errorf("nats.maxAge is %s: use 1s or more, or 0 for ever", o.MaxAge))
	}
	return errors.Join(append(problems, o.Login.Check())...)
}

// servers is the URL for error texts.
func (o *Options) servers() string {
	var names []string
	for text := range strings.SplitSeq(o.URL, ",") {
		if u, err := url.Parse(strings.TrimSpace(text)); err == nil {
			names = append(names, u.Redacted())
		}
	}
	return strings.Join(names, ",")
}

// remedy is what to give who shares the stream with another writer.
func (o *Options) remedy() string {
	switch {
	case o.Whole: // the log of a state
		return "a log of its own with the key state.log.name"
	case o.KV != "":
		return "a bucket of its own with the key kv"
	}
	return "a stream of its own with the key stream"
}

// tuning is what tests turn down.
type tuning struct {
	conn.Timing
	look    time.Duration // how often a stream is compared with what it held, while something is written
	quiet   time.Duration // a stream that stays as it is for so long has taken all that was on its way
	pending int           // messages that may wait for their acknowledgement
	bytes   int           // and their bytes; the server's own queue of a stream takes 128 MiB
}

// mostUnderWay is how many messages wait for their acknowledgement at most.
const mostUnderWay = 1024

func defaultTuning() tuning {
	return tuning{
		Timing: conn.Timing{
			Reply: 5 * time.Second, Outage: 5 * time.Second, Dial: 5 * time.Second, Flush: 10 * time.Second, Ping: 15 * time.Second,
		},
		look: 10 * time.Second, quiet: time.Second, pending: mostUnderWay, bytes: 8 << 20,
	}
}

// Connection is how the sink connects, for what else speaks to its servers, under another name.
func (o *Options) Connection(name string) *conn.Options {
	t := defaultTuning()
	options := o.connection(&t)
	options.Name, options.Replies = name, 1
	return options
}

func (o *Options) connection(t *tuning) *conn.Options {
	return &conn.Options{
		URL: o.URL, Servers: o.servers(), Name: o.Name, Domain: o.Domain, Login: o.Login, Extra: o.Extra,
		Timing:  t.Timing,
		Replies: 4 * t.pending, // those of an attempt that was given up come, too
	}
}

var (
	errLeaderless = errors.New("it has no leader at the moment")
	// an acknowledgement for another place than the message asked for
	errMisplaced = errors.New("message stored at another sequence than expected")
	errUnsettled = errors.New("messages arrived while the stream's end was read")
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
	case jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant, codeSequenceMismatch:
		return "sequence"
	case codeAccountResources, codeInsufficient, codeMemory, codeStorage, codeStoreFailed:
		return "limits"
	case codeTooManyRequests:
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
	case errors.Is(err, errMisplaced), errors.Is(err, errUnsettled):
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
