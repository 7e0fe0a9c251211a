package config

// LineFormats are those that can be told apart in a file, which has values alone.
func LineFormats() []string { return []string{"cloudevents", "debezium"} }

// What is cut out of each object unless it is kept.
const (
	KeepManagedFields = "managedFields" // metadata.managedFields
	KeepLastApplied   = "lastApplied"   // the annotation of kubectl apply
)

// IgnoreHeartbeats is a name that Resource.Ignore may have beside paths. It stands for what changes although nothing
// happens.
const IgnoreHeartbeats = "heartbeats"

// Some of the values that tags allow.
const (
	formatDebezium = "debezium" // has keys of its own
	formatObject   = "object"   // has deletes of which the key alone says whose they are

	updatesWhole = "whole" // an update says the object
	updatesPatch = "patch" // what changed since a version that the sink has, where that is certain

	comparableHashes = "comparable" // of the value alone
	discardNew       = "new"        // a full stream takes nothing, so that the sink waits for room
	withholdFailed   = "deadletter" // a record whose filter fails is kept aside, and a gap record stands for it

	oauthBearer = "OAUTHBEARER" // logs in without a user and a password
	mskIAM      = "AWS_MSK_IAM" // likewise

	fullBlock = "block" // reading waits for the sink
	fullSpool = "spool" // what a full queue does not hold goes to disk, up to Queue.Spool
	// it holds the newest record of each object alone, full or not, and those go to disk, up to Queue.Spool
	fullCoalesce = "coalesce"

	oversizeTrim   = "trim"   // it is cut until it fits; where it does not, it is kept aside
	oversizeReject = "reject" // the sink stops

	subjectTopic  = "topic"  // a subject for each topic
	subjectRecord = "record" // the same subject in all topics
)

// placeholders are the names that a template of topics or subjects may hold in braces, beside label:KEY.
func placeholders() []string {
	return []string{"cluster", "group", "resource", "namespace", "name", "version", "kind"}
}

// schemes are the kinds of NATS URL: in the clear until the server asks for TLS, TLS from the client's side, and the
// same over websockets.
func schemes() []string { return []string{"nats", "tls", "ws", "wss"} }
