// Package config reads what a user wants from a YAML file and from flags. It is strict: a key that nobody reads, a
// value of the wrong type and a template that cannot be filled in are problems, and all of them are reported at once,
// each with its path and line in the file. It knows no broker and no API server: whether a file exists, a host answers
// or a resource is served is for others to find out.
//
// A program calls Load, then Overlay with its flags, then Validate:
//
//	cfg, err := config.Load(path, os.LookupEnv)
//	...
//	err = config.Overlay(cfg, flags)
//	...
//	err = cfg.Validate()
//
// Each of the three errors is a *Problems. Without a file, start from new(Config).
package config

import "time"

// Config is a whole configuration. The zero value is an empty one. Its JSON form has the file's keys, so that it can
// be shown to a user, and never holds a secret.
type Config struct {
	Cluster   string     `json:"cluster,omitzero"` // "" leaves the name to the kubeconfig
	Resources []Resource `json:"resources,omitempty"`
	Sinks     []Sink     `json:"sinks,omitempty"`
	State     State      `json:"state"`
	Listen    string     `json:"listen"` // address of metrics and health
	Log       Log        `json:"log"`
	RedactKey Secret     `json:"redactKey,omitzero"` // of the hashes of redacted values; "" is one of the state's own
	Discovery Discovery  `json:"discovery"`

	origin origin
}

// Resource chooses objects. In a file it is a string, the name alone, or a mapping.
type Resource struct {
	Name       string   `json:"resource"`             // as kubectl writes it: "pods", "deployments.apps", "*.cert-manager.io", "*"
	Namespaces []string `json:"namespaces,omitempty"` // none is all
	// What is left out: of all namespaces these, and of a wildcard's resources those of these names.
	ExcludeNamespaces []string `json:"excludeNamespaces,omitempty"`
	Exclude           []string `json:"exclude,omitempty"` // as kubectl writes them in full: "events", "leases.coordination.k8s.io", "*.metrics.k8s.io"

	LabelSelector string `json:"labelSelector,omitzero"`
	FieldSelector string `json:"fieldSelector,omitzero"`

	// What of the selected goes on. Paths are a subset of kubectl's JSONPath, and the filter is an expression in CEL; both
	// are for others to parse.
	Ops           []string  `json:"ops,omitempty"`          // of Ops; none is all
	Filter        string    `json:"filter,omitzero"`        // "" is all
	FilterFailure string    `json:"filterFailure,omitzero"` // one of FilterFailures, what becomes of a record whose filter fails
	Before        bool      `json:"before,omitzero"`        // keep each object, so that the next record says how it was
	Keep          []string  `json:"keep,omitempty"`         // of Keepables, what is left in although it is cut by default
	Only          []string  `json:"only,omitempty"`         // paths of what is left in; none is all
	Drop          []string  `json:"drop,omitempty"`         // paths of what is left out
	Redact        Redaction `json:"redact,omitzero"`        // what becomes keyed hashes
	RedactEnv     []string  `json:"redactEnv,omitempty"`    // patterns of environment variables whose values do
}

// Sink is one destination. Exactly one of Kafka, NATS and File is set in a valid one.
type Sink struct {
	Name      string   `json:"name"`
	Kafka     *Kafka   `json:"kafka,omitempty"`
	NATS      *NATS    `json:"nats,omitempty"`
	File      *File    `json:"file,omitempty"`
	Format    string   `json:"format"`              // one of Formats
	Resources []string `json:"resources,omitempty"` // of the configuration's resources, by their spelling; none is all
	Queue     Queue    `json:"queue"`
	Resync    Duration `json:"resync,omitzero"` // between two full snapshots of all that the sink takes; 0 is never

	// What the sink will never take.
	Oversize   string     `json:"oversize"`            // one of OversizePolicies
	Trim       []string   `json:"trim,omitempty"`      // paths that OversizeTrim cuts, after what it cuts by itself
	DeadLetter DeadLetter `json:"deadLetter,omitzero"` // where it is kept
}

// DeadLetter is where records go that a sink will never take.
type DeadLetter struct {
	Dir string `json:"dir,omitzero"` // with a directory of each sink in it; "" is deadletters in State.Dir
}

// NATS is a JetStream destination. At most one way to log in is set: Credentials, Nkey, both of them, User with Password,
// or Token.
type NATS struct {
	URL     string `json:"url"`              // servers, comma separated; a login in it was moved to the fields below
	Stream  string `json:"stream,omitzero"`  // created where missing; "" with KV
	Subject string `json:"subject,omitzero"` // template of Placeholders; "" with KV
	// Subjects are templates of their own for some of the configuration's resources, by their spelling.
	Subjects    map[string]string `json:"subjects,omitempty"`
	KV          string            `json:"kv,omitzero"`     // a bucket that holds the present state of each object, instead of a stream
	Publish     string            `json:"publish"`         // one of Publishings
	Shared      bool              `json:"shared,omitzero"` // others write to the stream, too
	Domain      string            `json:"domain,omitzero"` // of JetStream; "" is the server's
	TLS         TLS               `json:"tls,omitzero"`
	Credentials string            `json:"credentials,omitzero"` // path of a .creds file; of a JWT alone with Nkey
	Nkey        string            `json:"nkey,omitzero"`        // path of a seed file
	User        string            `json:"user,omitzero"`
	Password    Secret            `json:"password,omitzero"`
	Token       Secret            `json:"token,omitzero"`

	// The following are of a stream that is created.
	Replicas int      `json:"replicas"`
	Storage  string   `json:"storage"`           // one of Storages
	MaxAge   Duration `json:"maxAge,omitzero"`   // of messages; 0 keeps them
	MaxBytes Size     `json:"maxBytes,omitzero"` // 0 is without limit
	Discard  string   `json:"discard"`           // one of Discards
	History  int      `json:"history,omitzero"`  // values that a key of a bucket keeps; 0 is 1
}

// TLS is how a server is known and how the client shows itself. The paths are of PEM files.
type TLS struct {
	CA         string `json:"ca,omitzero"` // "" trusts the system's authorities
	Cert       string `json:"cert,omitzero"`
	Key        string `json:"key,omitzero"`
	ServerName string `json:"serverName,omitzero"` // "" is the URL's host
	First      bool   `json:"first,omitzero"`      // handshake before the server's greeting
}

// File is a destination on disk, or the process's standard output.
type File struct {
	Path   string `json:"path"`            // Stdout is standard output
	Rotate Size   `json:"rotate,omitzero"` // start a new file above this size; 0 never does
	Keep   int    `json:"keep,omitzero"`   // rotated files to keep; 0 keeps all
}

// Queue bounds what waits in memory for one sink.
type Queue struct {
	Bytes   Size   `json:"bytes"`
	Records int    `json:"records"`
	Full    string `json:"full"`           // one of FullPolicies
	Spool   Size   `json:"spool,omitzero"` // on disk, about, where Full is FullSpool or FullCoalesce; reading waits above it
}

// Discovery is how the exporter learns what the API server serves.
type Discovery struct {
	Interval Duration `json:"interval"` // between two times that it is asked
}

// State is what outlives the process.
type State struct {
	Dir string `json:"dir"`
}

// Log is what the process says about itself.
type Log struct {
	Level  string `json:"level"`  // one of LogLevels
	Format string `json:"format"` // one of LogFormats
}

// Stdout is the path of a File that stands for standard output.
const Stdout = "-"

// Kinds of Sink.
const (
	KindKafka  = "kafka"
	KindNATS   = "nats"
	KindFile   = "file"
	KindStdout = "stdout"
)

// Kind says where the sink leads: KindKafka, KindNATS, KindFile or KindStdout, and "" where no destination is set.
func (s *Sink) Kind() string {
	switch {
	case s.Kafka != nil:
		return KindKafka
	case s.NATS != nil:
		return KindNATS
	case s.File != nil && s.File.Path == Stdout:
		return KindStdout
	case s.File != nil:
		return KindFile
	}
	return ""
}

// Duration is a time.Duration that a file and the JSON form write as "10h".
type Duration time.Duration
