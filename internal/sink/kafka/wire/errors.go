package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

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

// cutHandshake is the cause of which diagnose looks for the cause.
const cutHandshake = "the connection was cut during the TLS handshake"

// ConnectError says why a connection to a broker was not made, or was of no use. It has no code of Kafka's.
type ConnectError struct {
	Address string // "" where our side of a login failed, before the broker has judged
	Cause   string // in words
	Remedy  string // the setting to change
	Class   Class  // Fatal where it is certain that only a person can mend it
	Err     error  // as the network, TLS or login library says it; nil where Cause says all
}

func (e *ConnectError) Error() string {
	if e.Address == "" {
		return "log in to Kafka: " + e.Err.Error()
	}
	text := fmt.Sprintf("connect to %s: %s", e.Address, e.Cause)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap hides io.EOF, for which kafka-go would put another error.
func (e *ConnectError) Unwrap() error {
	if errors.Is(e.Err, io.EOF) {
		return nil
	}
	return e.Err
}

// dialError is for a connection that was not made.
func dialError(address string, err error) error {
	failure := &ConnectError{Address: address, Class: Retriable, Err: err}
	var unknown *net.DNSError
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &unknown):
		failure.Cause, failure.Remedy = "the name is not found", "check kafka.brokers, and the names in the brokers' advertised.listeners"
	case errors.Is(err, syscall.ECONNREFUSED):
		failure.Cause, failure.Remedy = "nobody listens there", "check the port in kafka.brokers and in the brokers' advertised.listeners, and that the broker is up"
	case isTimeout(err):
		failure.Cause, failure.Remedy = "no answer in time", "check kafka.brokers and the brokers' advertised.listeners, and that no firewall is in between"
	default:
		failure.Cause, failure.Remedy = "no connection", "check kafka.brokers and the brokers' advertised.listeners"
	}
	return failure
}

// handshakeError is for a TLS handshake that failed on our side, or was cut.
func handshakeError(address, name string, err error) error {
	failure := &ConnectError{Address: address, Class: Fatal, Err: err}
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &authority):
		failure.Cause, failure.Remedy = "the broker's certificate is signed by an authority that is not trusted", "set kafka.tls.ca to a file with the authority's certificate"
	case errors.As(err, &hostname):
		failure.Cause = fmt.Sprintf("the broker's certificate is not for %q", name)
		failure.Remedy = "use a name that is in the certificate in kafka.brokers and the brokers' advertised.listeners, or set kafka.tls.serverName to one"
	case errors.As(err, &invalid), errors.As(err, &verification):
		failure.Cause, failure.Remedy = "the broker's certificate is not valid", "renew it on the broker, or check this machine's clock"
	case errors.As(err, &record):
		if strings.HasPrefix(string(record.RecordHeader[:]), "HTTP/") {
			return notKafka(address, record.RecordHeader[:])
		}
		failure.Cause, failure.Remedy = "the port does not speak TLS", "remove kafka.tls, or use the port of a TLS listener in kafka.brokers"
	case isRemoteAlert(err):
		return alertError(address, err)
	case isTimeout(err):
		failure.Class = Retriable
		failure.Cause, failure.Remedy = "the port accepts connections but does not answer", "check that kafka.brokers names a Kafka listener with TLS, and that the broker is not hanging"
	default:
		failure.Class = Retriable
		failure.Cause, failure.Remedy = cutHandshake, "check that the port in kafka.brokers is a listener with TLS; if not, remove kafka.tls"
	}
	return failure
}

// isRemoteAlert finds what the other side says of TLS; the type of an alert is crypto/tls's own.
func isRemoteAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// alertError is for a broker that refuses our side of TLS. Under TLS 1.3 it comes with the first read.
func alertError(address string, err error) error {
	failure := &ConnectError{Address: address, Class: Fatal, Err: err}
	if text := err.Error(); strings.Contains(text, "certificate") || strings.Contains(text, "unknown certificate authority") {
		failure.Cause = "the broker does not accept the client's certificate, or requires one"
		failure.Remedy = "set kafka.tls.cert and kafka.tls.key to a certificate that an authority of the broker's truststore has signed"
		return failure
	}
	failure.Cause, failure.Remedy = "the broker refuses the TLS handshake", "check the broker's ssl.enabled.protocols and ssl.cipher.suites; TLS 1.2 or 1.3 is needed"
	return failure
}

// firstReadError is for a connection that ended before the broker's first answer.
func firstReadError(address string, encrypted bool, err error) error {
	failure := &ConnectError{Address: address, Class: Retriable, Err: err}
	switch {
	case isRemoteAlert(err):
		return alertError(address, err)
	case isTimeout(err):
		failure.Cause, failure.Remedy = "the port accepts connections but does not answer like a Kafka broker", "check that kafka.brokers names a Kafka listener, and that the broker is not hanging"
	case encrypted:
		failure.Cause, failure.Remedy = "the connection was cut before the first answer", "check that the port is a Kafka listener with TLS, and whether it wants a client certificate (kafka.tls.cert, kafka.tls.key)"
	default:
		failure.Cause, failure.Remedy = "the connection was cut before the first answer", "check that the port is a Kafka listener, and whether it is one with TLS (kafka.tls)"
	}
	return failure
}

// notKafka says what answers there, by its first bytes.
func notKafka(address string, seen []byte) error {
	failure := &ConnectError{Address: address, Class: Fatal, Remedy: "set kafka.brokers to the port of a Kafka listener"}
	switch {
	case strings.HasPrefix(string(seen), "HTTP/"):
		failure.Cause = "this is not a Kafka broker, it answers with HTTP"
	case len(seen) >= 2 && seen[0] == 0x15 && seen[1] == 3: // a TLS alert, RFC 8446 section 5.1
		failure.Cause, failure.Remedy = "the port speaks TLS", "set kafka.tls, or use the port of a listener without TLS in kafka.brokers"
	default:
		failure.Cause = fmt.Sprintf("this is not a Kafka broker, it answers %.40q", seen)
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
		{kerr.CoordinatorLoadInProgress, Retriable, "the coordinator is reading its log", ""},
		{kerr.CoordinatorNotAvailable, Retriable, "there is no coordinator yet", "look whether __transaction_state can be made: transaction.state.log.replication.factor must not be above the number of brokers"},
		{kerr.NotCoordinator, Retriable, "the coordinator has moved", ""},
		{kerr.InvalidTopicException, Fatal, "Kafka does not take the topic's name", "change kafka.topic so that names have 1 to 249 letters, digits, dots, underscores and dashes"},
		{kerr.RecordListTooLarge, TooLarge, "the batch is larger than a segment of the topic", "raise segment.bytes of the topic"},
		{kerr.NotEnoughReplicas, Retriable, "fewer replicas are in sync than min.insync.replicas asks for, or, in a transaction, the one before is still ending", "start the brokers that are down"},
		{kerr.NotEnoughReplicasAfterAppend, Retriable, "the batch is in the log, on fewer replicas than min.insync.replicas asks for", "start the brokers that are down"},
		{kerr.InvalidRequiredAcks, Fatal, "the broker does not take acks=all", "use a broker that speaks Kafka's protocol in full"},
		{kerr.UnknownMemberID, Fatal, "a consumer uses the group", "leave the group {needs} to the exporter"},
		{kerr.TopicAuthorizationFailed, Fatal, "the user is not permitted", grant},
		{kerr.GroupAuthorizationFailed, Fatal, "the user is not permitted", grant},
		{kerr.ClusterAuthorizationFailed, Fatal, "the user is not permitted", grant},
		{kerr.InvalidTimestamp, Invalid, "a record's time is further from the broker's than the topic takes", "raise message.timestamp.before.max.ms of the topic where records wait for long, on disk or for the broker; where a clock is wrong, set it, or raise message.timestamp.after.max.ms"},
		{kerr.UnsupportedSaslMechanism, Fatal, "the listener does not have this login", "set kafka.sasl.mechanism to one that it has (sasl.enabled.mechanisms)"},
		{kerr.IllegalSaslState, Fatal, "the listener has no login", "remove kafka.sasl, or use the port of a listener with SASL in kafka.brokers"},
		{kerr.UnsupportedVersion, Fatal, "the broker is too old", "use Kafka 2.4 or newer"},
		{kerr.InvalidPartitions, Fatal, "Kafka does not take the number of partitions", "set kafka.partitions to 1 or more, or leave it out"},
		{kerr.InvalidReplicationFactor, Fatal, "there are fewer brokers than replicas asked for", "set kafka.replication to at most the number of brokers, or leave it out"},
		{kerr.InvalidReplicaAssignment, Fatal, "Kafka does not take the placement of replicas", ""},
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
		{kerr.SecurityDisabled, Fatal, "the brokers have no authorizer", ""},
		{kerr.OperationNotAttempted, Retriable, "another part of the request was refused", ""},
		{kerr.KafkaStorageError, Retriable, "a disk of the broker failed", "look into the broker's log"},
		{kerr.SaslAuthenticationFailed, Fatal, "the broker does not accept the login", "check {needs}"},
		{kerr.UnknownProducerID, Reopen, "the broker no longer knows the producer", ""},
		{kerr.DelegationTokenAuthorizationFailed, Fatal, "the user is not permitted", grant},
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
