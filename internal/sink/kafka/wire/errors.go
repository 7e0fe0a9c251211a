package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// errorsIn are the errors of this package that err is or wraps.
func errorsIn(err error) (answer *Error, connect *ConnectError) {
	errors.As(err, &answer)
	errors.As(err, &connect)
	return answer, connect
}

// Classify sorts an error of this package. Errors of the network, and what it does not know, are Retriable.
func Classify(err error) Class {
	switch answer, connect := errorsIn(err); {
	case answer != nil:
		return rowOf(answer.Code).class
	case connect != nil:
		return connect.Class
	}
	return Retriable
}

// Reason is a short word for an error, for a metric's label.
func Reason(err error) string {
	switch answer, connect := errorsIn(err); {
	case answer != nil:
		return strings.ToLower(rowOf(answer.Code).name())
	case connect != nil && connect.Address == "":
		return "login"
	case isTimeout(err):
		return "timeout"
	case connect != nil:
		return "unreachable"
	}
	return "disconnected"
}

// Explain adds to an error of this package what causes it and what to change, where that is known. A Fatal one becomes
// a *sink.PermanentError. Classify and errors.As see through it.
func Explain(err error) error {
	advice := ""
	switch answer, connect := errorsIn(err); {
	case err == nil || errors.As(err, new(*advised)):
		return err
	case answer != nil:
		advice = rowOf(answer.Code).advice(answer.Needs)
	case connect != nil:
		advice = connect.Remedy
	}
	explained := err
	if advice != "" {
		explained = &advised{err, advice}
	}
	if Classify(err) == Fatal && !errors.As(err, new(*sink.PermanentError)) {
		return &sink.PermanentError{Err: explained}
	}
	return explained
}

type advised struct {
	error
	advice string
}

func (a *advised) Error() string { return a.error.Error() + ": " + a.advice }
func (a *advised) Unwrap() error { return a.error }

// Error is an answer with one of Kafka's error codes.
type Error struct {
	Code    int16
	Message string // the broker's, mostly empty
	Request string // what was asked: "produce to topic t partition 3"
	Needs   string // the permission or the settings that the request depends on
	Topic   string // that the answer is about, where a request is about several
}

// Routine says whether brokers give such an answer while they are at work: a leader moves, a transaction is still
// ending, a coordinator is being found. Who asks again soon hears something else.
func (e *Error) Routine() bool { return rowOf(e.Code).class == Retriable }

func (e *Error) Error() string {
	text := fmt.Sprintf("%s: Kafka's error %d %s", e.Request, e.Code, rowOf(e.Code).name())
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// orNil is no error where the answer has no code.
func (e *Error) orNil() error {
	if e.Code == 0 {
		return nil
	}
	return e
}

// Code is Kafka's error code in err, and 0 where there is none.
func Code(err error) int16 {
	if answer, is := errors.AsType[*Error](err); is {
		return answer.Code
	}
	return 0
}

// ConnectError says why a connection to a broker was not made, or was of no use. It has no code of Kafka's.
type ConnectError struct {
	Address string // "" where our side of a login failed, before the broker has judged
	Remedy  string // the setting to change
	Class   Class  // Fatal where it is certain that only a person can mend it
	Err     error  // as the network, TLS or login library says it
}

func (e *ConnectError) Error() string {
	if e.Address == "" {
		return "log in to Kafka: " + e.Err.Error()
	}
	return fmt.Sprintf("connect to %s: %v", e.Address, e.Err)
}

// Unwrap hides io.EOF, for which kafka-go would put another error.
func (e *ConnectError) Unwrap() error {
	if errors.Is(e.Err, io.EOF) {
		return nil
	}
	return e.Err
}

// errNotKafka is what answers with something else than Kafka's protocol.
var errNotKafka = errors.New("this is not a Kafka broker without TLS")

// connectError says what a connection failed of up to the broker's first answer, and what to change.
func connectError(address string, err error) error {
	failure := &ConnectError{Address: address, Class: Fatal, Err: err}
	var remote *net.OpError // of a TLS alert; the alert's type is crypto/tls's own
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, new(*tls.CertificateVerificationError)):
		failure.Remedy = "set kafka.tls.ca to a file with the authority of the broker's certificate, and kafka.tls.serverName to a name in it"
	case errors.As(err, new(tls.RecordHeaderError)):
		failure.Remedy = "remove kafka.tls, or use the port of a TLS listener in kafka.brokers"
	case errors.Is(err, errNotKafka):
		failure.Remedy = "use the port of a Kafka listener in kafka.brokers, and set kafka.tls where it has TLS"
	case errors.As(err, &remote) && remote.Op == "remote error":
		failure.Remedy = "set kafka.tls.cert and kafka.tls.key to a certificate that an authority of the broker's truststore has signed, and check the broker's ssl.enabled.protocols"
	default:
		failure.Class = Retriable
		failure.Remedy = "check that the broker is up, the address in kafka.brokers and the brokers' advertised.listeners, and whether the listener wants kafka.tls or kafka.sasl"
	}
	return failure
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// row is what one of Kafka's errors means to a producer that sends the same bytes until they are acknowledged, one
// batch at a time a partition.
type row struct {
	of     *kerr.Error
	class  Class
	cause  string
	remedy string // {needs} stands for Error.Needs
}

const grant = "grant the user {needs}"

// table is every error that the requests of this package are answered with, but for those of brokers that only have to
// be asked again. Most were seen on Apache Kafka 4.1; the rules of the others are those of Errors.java.
func table() []row {
	return []row{
		{kerr.UnknownServerError, Retriable, "the broker failed in a way that it has no code for, or cannot read the batch's compression", "look into the broker's log"},
		{kerr.OffsetOutOfRange, Reopen, "the log does not hold the offset: it was cut, or retention has passed it", ""},
		{kerr.CorruptMessage, Reopen, "the checksum does not fit: the same bytes would be refused again", "check the memory of this machine and of the broker's"},
		{kerr.UnknownTopicOrPartition, Retriable, "the topic or partition is not there, or not known to this broker yet", "create the topic, or let the exporter create it"},
		{kerr.LeaderNotAvailable, Retriable, "the partition has no leader", "start the brokers that have its replicas"},
		{kerr.NotLeaderForPartition, Retriable, "the leader has moved", ""},
		{kerr.RequestTimedOut, Retriable, "the in-sync replicas did not all take the batch in time; it may be in the log", "look for brokers that are down or slow"},
		{kerr.MessageTooLarge, TooLarge, "the batch is larger than the topic takes", "raise max.message.bytes of the topic, or message.max.bytes of the brokers"},
		{kerr.CoordinatorNotAvailable, Retriable, "there is no coordinator yet", "look whether __transaction_state can be made: transaction.state.log.replication.factor must not be above the number of brokers"},
		{kerr.InvalidTopicException, Fatal, "Kafka does not take the topic's name", "change kafka.topic so that names have 1 to 249 letters, digits, dots, underscores and dashes"},
		{kerr.RecordListTooLarge, TooLarge, "the batch is larger than a segment of the topic", "raise segment.bytes of the topic"},
		{kerr.NotEnoughReplicas, Retriable, "fewer replicas are in sync than min.insync.replicas asks for, or, in a transaction, the one before is still ending", "start the brokers that are down"},
		{kerr.NotEnoughReplicasAfterAppend, Retriable, "the batch is in the log, on fewer replicas than min.insync.replicas asks for", "start the brokers that are down"},
		{kerr.TopicAuthorizationFailed, Fatal, "the user is not permitted", grant},
		{kerr.ClusterAuthorizationFailed, Fatal, "the user is not permitted", grant},
		{kerr.InvalidTimestamp, Invalid, "a record's time is further from the broker's than the topic takes", "raise message.timestamp.before.max.ms of the topic where records wait for long, on disk or for the broker; where a clock is wrong, set it, or raise message.timestamp.after.max.ms"},
		{kerr.UnsupportedSaslMechanism, Fatal, "the listener does not have this login", "set kafka.sasl.mechanism to one that it has (sasl.enabled.mechanisms)"},
		{kerr.IllegalSaslState, Fatal, "the listener has no login", "remove kafka.sasl, or use the port of a listener with SASL in kafka.brokers"},
		{kerr.UnsupportedVersion, Fatal, "the broker is too old", "use Kafka 2.5 or newer"},
		{kerr.InvalidPartitions, Fatal, "Kafka does not take the number of partitions", "set kafka.partitions to 1 or more, or leave it out"},
		{kerr.InvalidReplicationFactor, Fatal, "there are fewer brokers than replicas asked for", "set kafka.replication to at most the number of brokers, or leave it out"},
		{kerr.InvalidConfig, Fatal, "Kafka does not take a setting of the topic", "correct kafka.topicConfig"},
		{kerr.InvalidRequest, Fatal, "the broker does not understand the request", ""},
		{kerr.UnsupportedForMessageFormat, Fatal, "the topic has an old message format", "set message.format.version of the topic to 0.11 or newer"},
		{kerr.PolicyViolation, Fatal, "a policy of the brokers (create.topic.policy.class.name) refuses the topic", "change what the policy's message names, or create the topic by hand"},
		{kerr.OutOfOrderSequenceNumber, Reopen, "the log does not hold what it had acknowledged, or the producer's state is another", "look for unclean leader elections; set min.insync.replicas to 2 or more"},
		{kerr.DuplicateSequenceNumber, Reopen, "the broker has the sequence, and no longer knows where", ""},
		{kerr.InvalidProducerEpoch, Fenced, "another producer has taken the transactional id, or the transaction timed out", "let one exporter at a time use kafka.transactionalId"},
		{kerr.InvalidTxnState, Reopen, "the transaction has ended, or the partition is not part of it", ""},
		{kerr.InvalidProducerIDMapping, Reopen, "the coordinator no longer knows the producer (transactional.id.expiration.ms)", ""},
		{kerr.InvalidTransactionTimeout, Fatal, "the transaction's timeout is above the brokers' transaction.max.timeout.ms", "raise transaction.max.timeout.ms of the brokers to 60000 or more"},
		{kerr.ConcurrentTransactions, Retriable, "the transaction before is still ending", "if that lasts, start the brokers that are down: its end needs min.insync.replicas"},
		{kerr.TransactionalIDAuthorizationFailed, Fatal, "the user is not permitted, or the request does not name the transactional id of its batch", grant},
		{kerr.KafkaStorageError, Retriable, "a disk of the broker failed", "look into the broker's log"},
		{kerr.SaslAuthenticationFailed, Fatal, "the broker does not accept the login", "check {needs}"},
		{kerr.UnknownProducerID, Reopen, "the broker no longer knows the producer", ""},
		{kerr.ListenerNotFound, Retriable, "the leader has no listener of the name that kafka.brokers leads to", "give all brokers the same listeners"},
		{kerr.UnsupportedCompressionType, Fatal, "the topic does not take the compression", "change kafka.compression"},
		{kerr.OffsetNotAvailable, Retriable, "the new leader does not know yet how much of its log is replicated", "if that lasts, start the brokers that are down"},
		{kerr.InvalidRecord, Invalid, "the topic does not take a record, such as one without a key where cleanup.policy is compact", ""},
		{kerr.ThrottlingQuotaExceeded, Retriable, "the brokers' quota for such requests is used up", "raise controller_mutation_rate for the user"},
		{kerr.ProducerFenced, Fenced, "another producer has taken the transactional id, or the transaction timed out", "let one exporter at a time use kafka.transactionalId"},
		{kerr.TransactionAbortable, Reopen, "the transaction must be aborted", ""},
	}
}

// rowOf finds a code. Nothing is lost by trying again after one that is not in the table.
func rowOf(code int16) row {
	for _, r := range table() {
		if r.of.Code == code {
			return r
		}
	}
	if known := kerr.TypedErrorForCode(code); known != nil && known.Code == code {
		return row{of: known, class: Retriable, cause: strings.ToLower(known.Description[:1]) + strings.TrimSuffix(known.Description[1:], ".")}
	}
	unknown := &kerr.Error{Code: code, Message: fmt.Sprintf("UNKNOWN_%d", code)}
	return row{of: unknown, class: Retriable, cause: "this version does not know the code"}
}

// name is Kafka's.
func (r row) name() string {
	if r.of == kerr.NotLeaderForPartition {
		return "NOT_LEADER_OR_FOLLOWER" // since Kafka 2.6
	}
	return r.of.Message
}

func (r row) advice(needs string) string {
	text := r.cause
	if r.remedy != "" {
		text += ": " + strings.ReplaceAll(r.remedy, "{needs}", needs)
	}
	return text
}

// Class says what an error allows.
type Class int

// The classes of errors.
const (
	Retriable Class = iota // send the same bytes again, after Refresh
	TooLarge               // the batch is larger than the topic takes
	Invalid                // the broker will never take a record of the batch
	Reopen                 // the broker's view of the producer or of the log is another: open again at the mark
	Fenced                 // the epoch is over: a newer producer has the transactional id, or the transaction timed out
	Fatal                  // only a person can mend it: configuration, permission, credentials
)

func (c Class) String() string {
	return [...]string{"retriable", "too_large", "invalid", "reopen", "fenced", "fatal"}[c]
}
