package config

// The lists below are what a value may be. They are the only place to add one.

// Formats are the values of Sink.Format; the first is the default.
func Formats() []string {
	return []string{"cloudevents", "cloudevents-binary", "debezium", "object"}
}

// LineFormats are those that can be told apart in a file, which has values alone.
func LineFormats() []string { return []string{"cloudevents", "debezium"} }

// Ops are the values of Resource.Ops. What a snapshot finds goes on with added or updated.
func Ops() []string { return []string{"added", "updated", "deleted"} }

// Keepables are the values of Resource.Keep.
func Keepables() []string { return []string{KeepManagedFields, KeepLastApplied} }

// What is cut out of each object unless it is kept.
const (
	KeepManagedFields = "managedFields" // metadata.managedFields
	KeepLastApplied   = "lastApplied"   // the annotation of kubectl apply
)

// FullPolicies are the values of Queue.Full, what a full queue does; the first is the default.
func FullPolicies() []string { return []string{"block"} }

// LogLevels are the values of Log.Level.
func LogLevels() []string { return []string{"debug", "info", "warn", "error"} }

// LogFormats are the values of Log.Format; the first is the default.
func LogFormats() []string { return []string{"text", "json"} }

// Placeholders are the names that a subject template may hold in braces.
func Placeholders() []string {
	return []string{"cluster", "group", "resource", "namespace", "name", "version", "kind"}
}

// schemes are the kinds of NATS URL: in the clear until the server asks for TLS, and TLS from the client's side.
func schemes() []string { return []string{"nats", "tls"} }
