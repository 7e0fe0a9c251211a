package config

// The lists below are what a value may be. They are the only place to add one.

// Formats are the values of Sink.Format; the first is the default.
func Formats() []string {
	return []string{"cloudevents", "cloudevents-binary", formatDebezium, formatObject}
}

const (
	formatDebezium = "debezium" // has keys of its own
	formatObject   = "object"   // has deletes of which the key alone says whose they are
)

// updates are the values of Sink.Updates, what an update says; the first is the default.
func updates() []string { return []string{updatesWhole, updatesPatch} }

// What an update says.
const (
	updatesWhole = "whole" // the object
	updatesPatch = "patch" // what changed since a version that the sink has, where that is certain
)

// LineFormats are those that can be told apart in a file, which has values alone.
func LineFormats() []string { return []string{"cloudevents", "debezium"} }

// hashes are the values of Config.Hash, what the hash of a redacted value is of; the first is the default.
func hashes() []string { return []string{"field", comparableHashes} }

// comparableHashes are of the value alone.
const comparableHashes = "comparable"

// publishings are the values of NATS.Publish, how messages are sent; the first is the default.
func publishings() []string { return []string{"auto", "fast", "atomic", "ordered"} }

// storages are the values of NATS.Storage; the first is the default.
func storages() []string { return []string{"file", "memory"} }

// discards are the values of NATS.Discard, what a full stream does; the first is the default.
func discards() []string { return []string{"old", discardNew} }

// discardNew makes a full stream take nothing, so that the sink waits for room.
const discardNew = "new"

// involvables are the values of Resource.Involved, by their names in an object's metadata.
func involvables() []string { return []string{"labels", "ownerReferences"} }

// operations are the values of Resource.Ops. What a snapshot finds goes on with added or updated.
func operations() []string { return []string{"added", "updated", "deleted"} }

// filterFailures are the values of Resource.FilterFailure; the first is what "" means.
func filterFailures() []string { return []string{"pass", withholdFailed} }

// withholdFailed makes a dead letter of a record whose filter fails, and a gap record stands for it.
const withholdFailed = "deadletter"

// keepables are the values of Resource.Keep.
func keepables() []string { return []string{KeepManagedFields, KeepLastApplied} }

// What is cut out of each object unless it is kept.
const (
	KeepManagedFields = "managedFields" // metadata.managedFields
	KeepLastApplied   = "lastApplied"   // the annotation of kubectl apply
)

// ignoreLists are the names that Resource.Ignore may have beside paths.
func ignoreLists() []string { return []string{IgnoreHeartbeats} }

// IgnoreHeartbeats stands for what changes although nothing happens.
const IgnoreHeartbeats = "heartbeats"

// deliveries are the values of Kafka.Delivery; the first is the default.
func deliveries() []string { return []string{"idempotent", transactional} }

// transactional is the delivery in which a batch is a transaction.
const transactional = "transactional"

// compressions are the values of Kafka.Compression; the first is the default.
func compressions() []string { return []string{"zstd", "snappy", "lz4", "gzip", "none"} }

// cleanups are the values of Kafka.Cleanup, the cleanup.policy of a topic; the first is the default.
func cleanups() []string { return []string{"delete", "compact", "compact,delete"} }

// mechanisms are the values of SASL.Mechanism.
func mechanisms() []string {
	return []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", oauthBearer, mskIAM}
}

// The mechanisms that log in without a user and a password.
const (
	oauthBearer = "OAUTHBEARER"
	mskIAM      = "AWS_MSK_IAM"
)

// fullPolicies are the values of Queue.Full, what a full queue does; the first is the default.
func fullPolicies() []string { return []string{fullBlock, fullSpool, fullCoalesce} }

// What a full queue does.
const (
	fullBlock = "block" // reading waits for the sink
	fullSpool = "spool" // what it does not hold goes to disk, up to Queue.Spool
	// it holds the newest record of each object alone, full or not, and those go to disk, up to Queue.Spool
	fullCoalesce = "coalesce"
)

// oversizePolicies are the values of Sink.Oversize, what becomes of a record that is too large; the first is the
// default.
func oversizePolicies() []string { return []string{oversizeDeadLetter, oversizeTrim, oversizeReject} }

// What becomes of a record that is too large for its sink.
const (
	oversizeDeadLetter = "deadletter" // it is kept aside, and a gap record stands for it
	oversizeTrim       = "trim"       // it is cut until it fits; where it does not, it is kept aside
	oversizeReject     = "reject"     // the sink stops
)

// LogLevels are the values of Log.Level.
func LogLevels() []string { return []string{"debug", "info", "warn", "error"} }

// LogFormats are the values of Log.Format; the first is the default.
func LogFormats() []string { return []string{"text", "json"} }

// placeholders are the names that a template of topics or subjects may hold in braces, beside label:KEY.
func placeholders() []string {
	return []string{"cluster", "group", "resource", "namespace", "name", "version", "kind"}
}

// schemes are the kinds of NATS URL: in the clear until the server asks for TLS, TLS from the client's side, and the
// same over websockets.
func schemes() []string { return []string{"nats", "tls", "ws", "wss"} }
