package nats

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// Options configures a sink. URL is needed, and Stream and Subjects, or KV.
type Options struct {
	URL  string // servers, separated by commas: "nats://a:4222,nats://b:4222"; also tls, ws and wss
	Name string // of the client, as the server shows it; "" is "kubecdc"

	Stream string
	// Formerly is the name that the stream had by default in older versions, "" is none. A stream of that name which
	// holds our records, or takes our subjects and holds nothing, is used instead of one of the name Stream that is not
	// there.
	Formerly string
	Subjects []string // what the stream must take; the stream's subjects, if the sink makes it
	Domain   string   // the JetStream domain; "" is that of the server
	Publish  string   // how messages are sent, one of the constants; "" is PublishAuto
	Shared   bool     // others may write to the stream, too; see package comment
	// Writer tells this sink from all others that write to a shared stream, also from those of the same cluster; it
	// stays the same for as long as the sink's marks are kept. "" is Name.
	Writer string
	// Judge tells records of other clusters; nil takes all for ours.
	Judge sink.Judge

	// KV is the name of a bucket, "" is none. With it, Stream is the bucket's and stays empty, and so does Subjects.
	KV      string
	History int // values that a key of a new bucket keeps; 0 is 1, 64 is the most

	// For a stream that the sink makes. One that is there already keeps what it has.
	Storage    string        // "file" or "memory"; "" is "file"
	Replicas   int           // 0 is 1
	MaxAge     time.Duration // 0 is for ever
	MaxBytes   int64         // 0 is without limit
	DiscardNew bool          // at MaxBytes wait for room, instead of dropping the oldest messages

	Login
	InboxPrefix string // "" is "_INBOX"

	Retry  sink.RetryFunc    // nil is nobody
	Notice func(text string) // is told how messages are sent, and why, when that is decided or changes; nil is nobody
	Extra  []natsgo.Option   // for what has no field here, such as an in-process server
}

// Login and TLS are those of the connection.
type (
	Login = conn.Login
	TLS   = conn.TLS
)

// complete checks the options and fills in the defaults. It reports all problems at once.
func (o *Options) complete() error {
	if o.Name == "" {
		o.Name = "kubecdc"
	}
	if o.Writer == "" {
		o.Writer = o.Name
	}
	if o.Judge == nil {
		o.Judge = func(*sink.Stored) error { return nil }
	}
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	if o.KV != "" {
		o.useBucket()
	}
	if o.Storage == "" {
		o.Storage = StorageFile
	}
	if o.Publish == "" {
		o.Publish = PublishAuto
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	if o.Retry == nil {
		o.Retry = func(string, error) {}
	}
	return errors.Join(o.checkURL(), o.checkStream(), o.checkPublish(), o.checkBucket(), o.checkLimits(), o.Login.Check())
}

// useBucket fills in what follows from the bucket's name.
func (o *Options) useBucket() {
	if o.Stream == "" {
		o.Stream = bucketStream + o.KV
	}
	if len(o.Subjects) == 0 {
		o.Subjects = []string{bucketSubject + o.KV + ".>"}
	}
	if o.History == 0 {
		o.History = 1
	}
}

func (o *Options) checkBucket() error {
	if o.KV == "" {
		if o.History != 0 {
			return errors.New("option History is set without KV: set both or none")
		}
		return nil
	}
	var problems []error
	if strings.ContainsFunc(o.KV, func(r rune) bool { return !inBucketName(r) }) {
		problems = append(problems, fmt.Errorf("option KV %q is not a bucket's name: it has letters, digits, '-' and '_'", o.KV))
	}
	if subject := bucketSubject + o.KV + ".>"; o.Stream != bucketStream+o.KV || len(o.Subjects) != 1 || o.Subjects[0] != subject {
		problems = append(problems, errors.New("options Stream and Subjects follow from KV: leave them out"))
	}
	if o.History < 1 || o.History > mostHistory {
		problems = append(problems, fmt.Errorf("option History is %d: use 1 to %d", o.History, mostHistory))
	}
	if o.MaxAge != 0 {
		problems = append(problems, errors.New("option MaxAge is set with KV: keys of objects that live must not expire: leave it out"))
	}
	if o.Shared {
		problems = append(problems, errors.New("option Shared is set with KV: a bucket has one writer: set one of both"))
	}
	return errors.Join(problems...)
}

func (o *Options) checkURL() error {
	if o.URL == "" {
		return errors.New(`option URL is empty: name a server, such as "nats://host:4222"`)
	}
	for text := range strings.SplitSeq(o.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(text))
		if err != nil {
			// the cause may hold a password
			return errors.New(`option URL does not parse: write it as "nats://host:4222"`)
		}
		switch u.Scheme {
		case "nats", "tls", "ws", "wss":
		default:
			return fmt.Errorf(`option URL %q has the scheme %q: use nats, tls, ws or wss`, u.Redacted(), u.Scheme)
		}
		if u.Hostname() == "" {
			return fmt.Errorf(`option URL %q has no host: write it as "nats://host:4222"`, u.Redacted())
		}
	}
	return nil
}

func (o *Options) checkStream() error {
	var problems []error
	if o.Stream == "" || strings.ContainsAny(o.Stream, ".*>/\\ \t\r\n") {
		problems = append(problems, fmt.Errorf("option Stream %q is not a stream's name: it has no dots, wildcards, slashes and spaces",
			o.Stream))
	}
	if len(o.Subjects) == 0 {
		problems = append(problems, errors.New(`option Subjects is empty: name what the stream takes, such as "k8s.>"`))
	}
	for _, subject := range o.Subjects {
		if !validPattern(subject) {
			problems = append(problems, fmt.Errorf(`option Subjects: %q is not a subject: write it as "k8s.prod.>"`, subject))
		}
	}
	if strings.ContainsAny(o.Domain+o.InboxPrefix, "*> \t\r\n") || strings.Contains(o.Domain, ".") {
		problems = append(problems, fmt.Errorf("options Domain %q and InboxPrefix %q must have no wildcards and spaces: leave them out",
			o.Domain, o.InboxPrefix))
	}
	return errors.Join(problems...)
}

func (o *Options) checkPublish() error {
	switch o.Publish {
	case PublishAuto, PublishOrdered:
		return nil
	case PublishFast, PublishAtomic:
		if o.Shared {
			return fmt.Errorf("option Publish is %q and Shared is set: a shared stream needs %q", o.Publish, PublishOrdered)
		}
		return nil
	}
	return fmt.Errorf("option Publish is %q: use %s, %s, %s or %s", o.Publish, PublishAuto, PublishFast, PublishAtomic, PublishOrdered)
}

// The values of Options.Storage.
const (
	StorageFile   = "file"
	StorageMemory = "memory"
)

func (o *Options) storage() jetstream.StorageType {
	if o.Storage == StorageMemory {
		return jetstream.MemoryStorage
	}
	return jetstream.FileStorage
}

// window is how long a shared stream must know a message's id.
const window = 2 * time.Minute

// window is for how long a stream of ours knows message ids. It gets none, and so the shortest that servers allow,
// unless it is shared.
func (o *Options) window() time.Duration {
	switch {
	case !o.Shared:
		return 100 * time.Millisecond
	}
	return window
}

func (o *Options) checkLimits() error {
	var problems []error
	if o.Storage != StorageFile && o.Storage != StorageMemory {
		problems = append(problems, fmt.Errorf("option Storage is %q: use %s or %s", o.Storage, StorageFile, StorageMemory))
	}
	if o.Shared && o.MaxAge > 0 && o.MaxAge < window {
		problems = append(problems, fmt.Errorf("option MaxAge is %s and Shared is set: use %s or more", o.MaxAge, window))
	}
	if o.Replicas < 1 || o.Replicas > 5 {
		problems = append(problems, fmt.Errorf("option Replicas is %d: use 1 to 5", o.Replicas))
	}
	if o.MaxAge < 0 || o.MaxAge > 0 && o.MaxAge < time.Second {
		problems = append(problems, fmt.Errorf("option MaxAge is %s: use 1s or more, or 0 for ever", o.MaxAge))
	}
	if o.MaxBytes < 0 {
		problems = append(problems, fmt.Errorf("option MaxBytes is %d: use 0 for no limit", o.MaxBytes))
	}
	if o.DiscardNew && o.MaxBytes == 0 {
		problems = append(problems, errors.New("option DiscardNew is set without MaxBytes: set both or none"))
	}
	return errors.Join(problems...)
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

// author is a hash of who writes to a shared stream, and since when; "" where the stream is not shared.
func (o *Options) author(life string) string {
	if !o.Shared {
		return ""
	}
	return shortHash(o.Writer, life)
}
