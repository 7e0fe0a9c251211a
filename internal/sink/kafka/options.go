package kafka

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// The values of Options.Delivery.
const (
	Idempotent    = "idempotent"
	Transactional = "transactional"
)

// Options configures a sink. Wire.Brokers is needed.
type Options struct {
	Wire wire.Options // the way to the brokers

	// Topics are all topics that messages name as their destination. Open makes sure of them, so that every mark has
	// all of them, and a record of a crash is found. Another destination is taken, too, but what a crash leaves in it
	// before a mark with it is saved comes a second time, with the same id.
	Topics []string
	// Found are those of Topics that no configuration names, such as those of resources that a wildcard has found. What
	// speaks against one of them is held against its messages, as with a destination that is none of Topics.
	Found []string
	// Others matches the further topics that a Reader looks for, which only records tell; nil is none.
	Others *regexp.Regexp

	// Uncompacted says why what is written to the topic must not be in a compacted one; "" is that it may be. nil is
	// that all may be.
	Uncompacted func(topic string) string
	// Reserved says what else the topic is for, so that no record may be in it; "" is nothing. nil reserves none.
	Reserved func(topic string) string
	// Form is how topics and keys are made, as JSON, which the mark has; nil says nothing. Changed says in what it is
	// another one than that of before, of topics that there were; "" is nothing.
	Form    []byte
	Changed func(before []byte, had func(topic string) bool) string
	// AcceptNewKeys ends the keys in compacted topics whose form has changed. Otherwise that is an error.
	AcceptNewKeys bool
	// Resync is how often every object is written again; 0 is never.
	Resync time.Duration

	Delivery string // Idempotent or Transactional; "" is Idempotent
	// TransactionalID has the right to write: whoever opened with it last is the only writer. "" is for Idempotent
	// alone, and keeps nobody out.
	TransactionalID string
	Compression     string // one of batch.Codecs; "" is "zstd"

	// For topics that the sink makes. Those that are there already keep what they have.
	Create      bool
	LabelTopics int               // how many at most, of those that are none of Topics; 0 is any number
	Partitions  int               // 0 is the broker's num.partitions
	Replication int               // 0 is the broker's default.replication.factor
	Cleanup     string            // "delete", "compact" or "compact,delete"; "" is the broker's
	Retention   time.Duration     // 0 is the broker's, negative is for ever
	Configs     map[string]string // further settings of topics, by Kafka's names

	// Whole refuses topics that do not keep the newest message of every key in one order: with several partitions, or
	// another cleanup.policy than compact.
	Whole bool

	// tells records of other clusters in topics that are to be written to; nil is that nobody looks
	Judge  sink.Judge
	Retry  sink.RetryFunc    // nil is nobody
	Notice func(text string) // is told how the sink works, where a person may want to know; nil is nobody
	Warn   func(text string) // is told of what may be meant otherwise; nil is nobody
	Made   func(topics int)  // is told how many of LabelTopics there are, in Open and with each new one; nil is nobody
}

// cleanupPolicy is the setting by which a topic forgets.
const cleanupPolicy = "cleanup.policy"

// complete checks the options and fills in the defaults. It reports all problems at once.
func (o *Options) complete() error {
	o.Delivery = cmp.Or(o.Delivery, Idempotent)
	o.Compression = cmp.Or(o.Compression, batch.Zstd.String())
	if o.Retry == nil {
		o.Retry = func(string, error) {}
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	if o.Uncompacted == nil {
		o.Uncompacted = func(string) string { return "" }
	}
	if o.Reserved == nil {
		o.Reserved = func(string) string { return "" }
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	if o.Made == nil {
		o.Made = func(int) {}
	}
	impossible := func(name string) bool { return slices.Contains(o.Found, name) && validTopic(name) != nil }
	o.Topics = slices.DeleteFunc(slices.Clone(o.Topics), impossible)
	return errors.Join(o.checkTopics(), o.checkCreation())
}

func (o *Options) checkTopics() error {
	var problems []error
	for _, name := range o.Topics {
		if err := validTopic(name); err != nil {
			problems = append(problems, fmt.Errorf("option Topics: %w", err))
		}
	}
	return errors.Join(problems...)
}

// validTopic holds Kafka's rule (Topic.validate).
func validTopic(name string) error {
	const most = 249
	if len(name) > most || name == "." || name == ".." || !regexp.MustCompile(`^[-a-zA-Z0-9._]+$`).MatchString(name) {
		return fmt.Errorf("topic %q: use 1 to %d of the characters a-z, A-Z, 0-9, '.', '_' and '-', and not only dots", name, most)
	}
	return nil
}

func (o *Options) checkCreation() error {
	var problems []error
	if o.Partitions < 0 || o.Partitions > 100_000 {
		problems = append(problems, fmt.Errorf("option Partitions is %d: use 1 or more, or 0 for the broker's default", o.Partitions))
	}
	if o.Replication < 0 || o.Replication > 100 {
		problems = append(problems, fmt.Errorf("option Replication is %d: use 1 or more, or 0 for the broker's default", o.Replication))
	}
	if o.Retention > 0 && o.Retention < time.Second {
		problems = append(problems, fmt.Errorf("option Retention is %s: use 1s or more, a negative one for ever, or 0 for the broker's default",
			o.Retention))
	}
	for name := range o.Configs {
		if name == cleanupPolicy && o.Cleanup != "" || name == "retention.ms" && o.Retention != 0 {
			problems = append(problems, fmt.Errorf("option Configs: %s is also set by an option of its own: set one", name))
		}
	}
	return errors.Join(problems...)
}

// spec is how a topic is made.
func (o *Options) spec(name string) wire.TopicSpec {
	configs := map[string]string{}
	for name, value := range o.Configs {
		configs[name] = value
	}
	if o.Cleanup != "" {
		configs[cleanupPolicy] = o.Cleanup
	}
	switch {
	case o.Retention < 0:
		configs["retention.ms"] = "-1"
	case o.Retention > 0:
		configs["retention.ms"] = strconv.FormatInt(o.Retention.Milliseconds(), 10)
	}
	return wire.TopicSpec{
		Name: name, Partitions: int32(o.Partitions), Replication: int16(o.Replication), Configs: configs,
	}
}

// markers is how many a Write leaves after what it has written into a partition.
func (o *Options) markers() int64 {
	if o.Delivery == Transactional {
		return 1
	}
	return 0
}

// tuning is what tests turn.
type tuning struct {
	grace time.Duration // how long a request that is under way is waited for after the end of its context
	// how long a batch is sent again: the broker forgets producers after a day (producer.id.expiration.ms)
	resend      time.Duration
	gone        time.Duration // a topic that nobody knows for so long is deleted, and not new
	replication time.Duration // how long one attempt waits for the replicas
	transaction time.Duration // after which the coordinator aborts, at most
	silence     time.Duration // how long the right may be taken by somebody who does not sign
	coordinator time.Duration // how long idempotent delivery waits for a coordinator before it goes on without a fence
	// after which the right to write is asked for again: coordinators forget ids after a week
	// (transactional.id.expiration.ms)
	renewal  time.Duration
	closed   time.Duration // how long it is believed that a topic cannot be written to
	look     time.Duration // between two times that partitions are counted
	parallel int           // requests under way
	bytes    int           // of a batch before compression, if it is not one large message
	records  int           // of a batch
	readers  int           // partitions whose tails are read at once
	fetch    int           // bytes that are read of a partition at once
	contents int           // bytes that a batch in the log may hold when decompressed
}

func defaultTuning() tuning {
	return tuning{
		grace: time.Second, resend: time.Hour, gone: 3 * time.Second, replication: time.Second, transaction: time.Minute, silence: 10 * time.Second,
		coordinator: 30 * time.Second, renewal: 12 * time.Hour, closed: 10 * time.Second, look: time.Minute,
		parallel: 32, readers: 4, bytes: 1 << 20, records: 10_000, fetch: 1 << 20, contents: 256 << 20,
	}
}
