package wire

import (
	"fmt"
	"strings"
)

// row is what one of Kafka's error codes means to a producer that sends the same bytes until they are acknowledged, one
// batch at a time a partition.
type row struct {
	code   int16
	name   string // as Kafka's Errors.java has it
	class  Class
	cause  string
	remedy string // {needs} stands for Error.Needs
	source source
}

// source says where the rule of a row comes from.
type source string

const (
	measured source = "seen on Apache Kafka 4.1"
	javaDoc  source = "Errors.java and its exceptions"
)

// Codes that this package gives or looks at itself.
const (
	codeOffsetOutOfRange         int16 = 1
	codeUnknownTopic             int16 = 3
	codeLeaderNotAvailable       int16 = 5
	codeNotLeader                int16 = 6
	codeBrokerNotAvailable       int16 = 8
	codeReplicaNotAvailable      int16 = 9
	codeCoordinatorLoading       int16 = 14
	codeCoordinatorNotAvailable  int16 = 15
	codeNotCoordinator           int16 = 16
	codeInvalidTopic             int16 = 17
	codeUnsupportedSASLMechanism int16 = 33
	codeIllegalSASLState         int16 = 34
	codeUnsupportedVersion       int16 = 35
	codeTopicExists              int16 = 36
	codeNotController            int16 = 41
	codeTransactionalIDDenied    int16 = 53
	codeNotAttempted             int16 = 55
	codeStorageError             int16 = 56
	codeSASLAuthenticationFailed int16 = 58
	codeListenerNotFound         int16 = 72
	codeFencedLeaderEpoch        int16 = 74
	codeUnknownLeaderEpoch       int16 = 75
)

const grant = "grant the user {needs}"

// table is every code that the requests of this package are answered with.
func table() []row {
	return []row{
		{-1, "UNKNOWN_SERVER_ERROR", Retriable, "the broker failed in a way that it has no code for, or cannot read the batch's compression", "look into the broker's log", measured},
		{codeOffsetOutOfRange, "OFFSET_OUT_OF_RANGE", Reopen, "the log does not hold the offset: it was cut, or retention has passed it", "", measured},
		{2, "CORRUPT_MESSAGE", Reopen, "the checksum does not fit: the same bytes would be refused again", "check the memory of this machine and of the broker's", measured},
		{codeUnknownTopic, "UNKNOWN_TOPIC_OR_PARTITION", Retriable, "the topic or partition is not there, or not known to this broker yet", "create the topic, or let the exporter create it", measured},
		{codeLeaderNotAvailable, "LEADER_NOT_AVAILABLE", Retriable, "the partition has no leader", "start the brokers that have its replicas", measured},
		{codeNotLeader, "NOT_LEADER_OR_FOLLOWER", Retriable, "the leader has moved", "", measured},
		{7, "REQUEST_TIMED_OUT", Retriable, "the in-sync replicas did not all take the batch in time; it may be in the log", "look for brokers that are down or slow", measured},
		{codeBrokerNotAvailable, "BROKER_NOT_AVAILABLE", Retriable, "the broker is not up", "", javaDoc},
		{codeReplicaNotAvailable, "REPLICA_NOT_AVAILABLE", Retriable, "the replica is not there yet", "", javaDoc},
		{10, "MESSAGE_TOO_LARGE", TooLarge, "the batch is larger than the topic takes", "raise max.message.bytes of the topic, or message.max.bytes of the brokers", measured},
		{13, "NETWORK_EXCEPTION", Retriable, "a connection between brokers was cut", "", javaDoc},
		{codeCoordinatorLoading, "COORDINATOR_LOAD_IN_PROGRESS", Retriable, "the coordinator is reading its log", "", measured},
		{codeCoordinatorNotAvailable, "COORDINATOR_NOT_AVAILABLE", Retriable, "there is no coordinator yet", "look whether __transaction_state can be made: transaction.state.log.replication.factor must not be above the number of brokers", measured},
		{codeNotCoordinator, "NOT_COORDINATOR", Retriable, "the coordinator has moved", "", measured},
		{codeInvalidTopic, "INVALID_TOPIC_EXCEPTION", Fatal, "Kafka does not take the topic's name", "change kafka.topic so that names have 1 to 249 letters, digits, dots, underscores and dashes", measured},
		{18, "RECORD_LIST_TOO_LARGE", TooLarge, "the batch is larger than a segment of the topic", "raise segment.bytes of the topic", javaDoc},
		{19, "NOT_ENOUGH_REPLICAS", Retriable, "fewer replicas are in sync than min.insync.replicas asks for, or, in a transaction, the one before is still ending", "start the brokers that are down", measured},
		{20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", Retriable, "the batch is in the log, on fewer replicas than min.insync.replicas asks for", "start the brokers that are down", javaDoc},
		{21, "INVALID_REQUIRED_ACKS", Fatal, "the broker does not take acks=all", "use a broker that speaks Kafka's protocol in full", javaDoc},
		{25, "UNKNOWN_MEMBER_ID", Fatal, "a consumer uses the group", "leave the group {needs} to the exporter", javaDoc},
		{29, "TOPIC_AUTHORIZATION_FAILED", Fatal, "the user is not permitted", grant, measured},
		{30, "GROUP_AUTHORIZATION_FAILED", Fatal, "the user is not permitted", grant, javaDoc},
		{31, "CLUSTER_AUTHORIZATION_FAILED", Fatal, "the user is not permitted", grant, measured},
		{32, "INVALID_TIMESTAMP", Invalid, "a record's time is further from the broker's than the topic takes", "raise message.timestamp.before.max.ms of the topic where records wait for long, on disk or for the broker; where a clock is wrong, set it, or raise message.timestamp.after.max.ms", measured},
		{codeUnsupportedSASLMechanism, "UNSUPPORTED_SASL_MECHANISM", Fatal, "the listener does not have this login", "set kafka.sasl.mechanism to one that it has (sasl.enabled.mechanisms)", measured},
		{codeIllegalSASLState, "ILLEGAL_SASL_STATE", Fatal, "the listener has no login", "remove kafka.sasl, or use the port of a listener with SASL in kafka.brokers", measured},
		{codeUnsupportedVersion, "UNSUPPORTED_VERSION", Fatal, "the broker is too old", "use Kafka 2.4 or newer", javaDoc},
		{codeTopicExists, "TOPIC_ALREADY_EXISTS", Retriable, "the topic is there already", "", measured},
		{37, "INVALID_PARTITIONS", Fatal, "Kafka does not take the number of partitions", "set kafka.partitions to 1 or more, or leave it out", javaDoc},
		{38, "INVALID_REPLICATION_FACTOR", Fatal, "there are fewer brokers than replicas asked for", "set kafka.replication to at most the number of brokers, or leave it out", measured},
		{39, "INVALID_REPLICA_ASSIGNMENT", Fatal, "Kafka does not take the placement of replicas", "", javaDoc},
		{40, "INVALID_CONFIG", Fatal, "Kafka does not take a setting of the topic", "correct kafka.topicConfig", javaDoc},
		{codeNotController, "NOT_CONTROLLER", Retriable, "the controller has moved", "", javaDoc},
		{42, "INVALID_REQUEST", Fatal, "the broker does not understand the request", "", javaDoc},
		{43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", Fatal, "the topic has an old message format", "set message.format.version of the topic to 0.11 or newer", javaDoc},
		{44, "POLICY_VIOLATION", Fatal, "a policy of the brokers (create.topic.policy.class.name) refuses the topic", "change what the policy's message names, or create the topic by hand", javaDoc},
		{45, "OUT_OF_ORDER_SEQUENCE_NUMBER", Reopen, "the log does not hold what it had acknowledged, or the producer's state is another", "look for unclean leader elections; set min.insync.replicas to 2 or more", measured},
		{46, "DUPLICATE_SEQUENCE_NUMBER", Reopen, "the broker has the sequence, and no longer knows where", "", javaDoc},
		{47, "INVALID_PRODUCER_EPOCH", Fenced, "another producer has taken the transactional id, or the transaction timed out", "let one exporter at a time use kafka.transactionalId", measured},
		{48, "INVALID_TXN_STATE", Reopen, "the transaction has ended, or the partition is not part of it", "", measured},
		{49, "INVALID_PRODUCER_ID_MAPPING", Reopen, "the coordinator no longer knows the producer (transactional.id.expiration.ms)", "", measured},
		{50, "INVALID_TRANSACTION_TIMEOUT", Fatal, "the transaction's timeout is above the brokers' transaction.max.timeout.ms", "raise transaction.max.timeout.ms of the brokers to 60000 or more", measured},
		{51, "CONCURRENT_TRANSACTIONS", Retriable, "the transaction before is still ending", "if that lasts, start the brokers that are down: its end needs min.insync.replicas", measured},
		{52, "TRANSACTION_COORDINATOR_FENCED", Retriable, "the coordinator has moved", "", javaDoc},
		{codeTransactionalIDDenied, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", Fatal, "the user is not permitted, or the request does not name the transactional id of its batch", grant, measured},
		{54, "SECURITY_DISABLED", Fatal, "the brokers have no authorizer", "", javaDoc},
		{codeNotAttempted, "OPERATION_NOT_ATTEMPTED", Retriable, "another part of the request was refused", "", measured},
		{codeStorageError, "KAFKA_STORAGE_ERROR", Retriable, "a disk of the broker failed", "look into the broker's log", javaDoc},
		{codeSASLAuthenticationFailed, "SASL_AUTHENTICATION_FAILED", Fatal, "the broker does not accept the login", "check {needs}", measured},
		{59, "UNKNOWN_PRODUCER_ID", Reopen, "the broker no longer knows the producer", "", javaDoc},
		{60, "REASSIGNMENT_IN_PROGRESS", Retriable, "partitions are being moved", "", javaDoc},
		{65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", Fatal, "the user is not permitted", grant, javaDoc},
		{codeListenerNotFound, "LISTENER_NOT_FOUND", Retriable, "the leader has no listener of the name that kafka.brokers leads to", "give all brokers the same listeners", javaDoc},
		{codeFencedLeaderEpoch, "FENCED_LEADER_EPOCH", Retriable, "the leader has moved", "", javaDoc},
		{codeUnknownLeaderEpoch, "UNKNOWN_LEADER_EPOCH", Retriable, "the leader has moved", "", javaDoc},
		{76, "UNSUPPORTED_COMPRESSION_TYPE", Fatal, "the topic does not take the compression", "change kafka.compression", javaDoc},
		{78, "OFFSET_NOT_AVAILABLE", Retriable, "the new leader does not know yet how much of its log is replicated", "if that lasts, start the brokers that are down", measured},
		{87, "INVALID_RECORD", Invalid, "the topic does not take a record, such as one without a key where cleanup.policy is compact", "", measured},
		{89, "THROTTLING_QUOTA_EXCEEDED", Retriable, "the brokers' quota for such requests is used up", "raise controller_mutation_rate for the user", javaDoc},
		{90, "PRODUCER_FENCED", Fenced, "another producer has taken the transactional id, or the transaction timed out", "let one exporter at a time use kafka.transactionalId", measured},
		{120, "TRANSACTION_ABORTABLE", Reopen, "the transaction must be aborted", "", javaDoc},
		{129, "REBOOTSTRAP_REQUIRED", Retriable, "the list of brokers is out of date", "", javaDoc},
	}
}

// rowOf finds a code. One that is not in the table is of a newer Kafka, and nothing is lost by trying again.
func rowOf(code int16) row {
	for _, r := range table() {
		if r.code == code {
			return r
		}
	}
	return row{code: code, name: fmt.Sprintf("UNKNOWN_%d", code), class: Retriable, cause: "this version does not know the code", source: javaDoc}
}

func (r row) advice(needs string) string {
	text := r.cause
	if r.remedy != "" {
		text += ": " + strings.ReplaceAll(r.remedy, "{needs}", needs)
	}
	return text
}
