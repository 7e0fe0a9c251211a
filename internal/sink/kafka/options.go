package kafka

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// encoders make batches, as many at once as there are processors. Whoever takes one waits for one that nobody uses.
type encoders chan *batch.Encoder

func newEncoders(compression string) (encoders, error) {
	codec, err := batch.ParseCodec(compression)
	if err != nil {
		return nil, err
	}
	e := make(encoders, runtime.GOMAXPROCS(0))
	for range cap(e) {
		e <- batch.NewEncoder(codec)
	}
	return e, nil
}

func (e encoders) done(taken *batch.Encoder) {
	taken.Reset()
	e <- taken
}

// measure is the size of a batch with nothing but the atom.
func (e encoders) measure(atom []sink.Message) int {
	taken := <-e
	defer e.done(taken)
	var r batch.Record
	for i := range atom {
		taken.Add(fill(&r, &atom[i]))
	}
	return len(taken.Finish(nil, batch.Producer{}))
}

// fill makes the record the message, in the memory of the one before. It gives a message without a key an empty one: it
// belongs to the same partition, and a compacted topic takes no record without a key.
func fill(r *batch.Record, m *sink.Message) *batch.Record {
	headers := append(r.Headers[:0],
		batch.Header{Name: sink.HeaderID, Value: m.ID},
		batch.Header{Name: sink.HeaderOp, Value: m.Op},
		batch.Header{Name: sink.HeaderResourceVersion, Value: m.ResourceVersion},
	)
	for _, h := range m.Headers {
		headers = append(headers, batch.Header(h))
	}
	*r = batch.Record{Key: m.Key, Value: m.Value, Headers: headers, Timestamp: max(0, m.Time.UnixMilli())}
	if m.Key == nil {
		r.Key = []byte{}
	}
	return r
}

// sizeBound is at least what the messages take in a batch.
func sizeBound(messages []sink.Message) (n int) {
	const numbers = 64 // of a record and its first three headers
	for i := range messages {
		m := &messages[i]
		n += numbers + len(sink.HeaderID) + len(sink.HeaderOp) + len(sink.HeaderResourceVersion) +
			len(m.ID) + len(m.Op) + len(m.ResourceVersion) + len(m.Key) + len(m.Value)
		for _, h := range m.Headers {
			n += 10 + len(h.Name) + len(h.Value)
		}
	}
	return n
}

// atomEnd is the end of the messages that belong together: those of one id, such as a delete and its tombstone. They
// are stored in one batch, so the log has all of them or none.
func atomEnd(messages []sink.Message, i int) int {
	first, end := &messages[i], i+1
	for end < len(messages) && messages[end].ID == first.ID && messages[end].Destination == first.Destination &&
		string(messages[end].Key) == string(first.Key) {
		end++
	}
	return end
}

// compacts says whether a topic with the cleanup.policy keeps the newest record of each key alone.
func compacts(policy string) bool { return strings.Contains(policy, "compact") }

// reserved refuses a topic that is for something else.
func (o *Options) reserved(name string) error {
	if what := o.Reserved(name); what != "" {
		return topicPermanent("open topic %s: it is %s, and records would destroy that: choose another kafka.topic", name, what)
	}
	return nil
}

// keepsAll refuses a compacted topic for what must not be in one.
func (o *Options) keepsAll(name, policy string) error {
	if !compacts(policy) {
		return nil
	}
	if why := o.Uncompacted(name); why != "" {
		return topicPermanent("open topic %s: the topic is compacted, and %s, or name another topic", name, why)
	}
	return nil
}

// misfits says in what the topic differs from what is configured, and which objects it will forget.
func (o *Options) misfits(known wire.Topic, settings wire.Settings) (all []string) {
	spec := o.spec(known.Name)
	if have, want := len(known.Partitions), int(spec.Partitions); want > 0 && have != want {
		all = append(all, fmt.Sprintf("has %d partitions, and %d are configured", have, want))
	}
	if len(known.Partitions) > 0 && o.Replication > 0 && len(known.Partitions[0].Replicas) != o.Replication {
		all = append(all, fmt.Sprintf("has %d replicas, and %d are configured", len(known.Partitions[0].Replicas), o.Replication))
	}
	configured := spec.Configs
	for _, name := range slices.Sorted(maps.Keys(configured)) {
		if have, given := settings.Values[name]; given && !sameSetting(have, configured[name]) {
			all = append(all, fmt.Sprintf("has %s %s, and %s is configured", name, have, configured[name]))
		}
	}
	if len(all) > 0 {
		all = []string{strings.Join(all, ", ") + ": the topic stays as it is; change it, or the configuration"}
	}
	return append(all, o.forgets(settings.Values)...)
}

// sameSetting compares numbers by what they say, and lists in any order.
func sameSetting(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	if err == nil && err2 == nil {
		return x == y
	}
	sorted := func(list string) []string {
		return slices.Sorted(strings.SplitSeq(strings.ReplaceAll(list, " ", ""), ","))
	}
	return slices.Equal(sorted(a), sorted(b))
}

// forgets finds a table that loses the objects that do not change: one that is compacted, and deletes what is old all
// the same, unless every object is written again before that.
func (o *Options) forgets(values map[string]string) []string {
	if policy := values[cleanupPolicy]; !compacts(policy) || !strings.Contains(policy, "delete") {
		return nil
	}
	after, bytes := values["retention.ms"], values["retention.bytes"]
	millis, err := strconv.ParseInt(after, 10, 64)
	kept := time.Duration(millis) * time.Millisecond
	switch {
	case after == "" || err != nil:
		after = "the broker's retention"
	case millis >= 0 && (o.Resync == 0 || o.Resync > kept/2):
		after = kept.String()
	case bytes != "" && bytes != "-1":
		after = "more than " + bytes + " bytes"
	default:
		return nil
	}
	return []string{fmt.Sprintf("forgets objects that do not change, after %s, since its cleanup.policy is %s: "+
		"set it to compact, or resync to less than half of its retention", after, values[cleanupPolicy])}
}

// notes are said once each, however many topics they are about.
type notes struct{ texts []string }

func (n *notes) add(format, topic string, args ...any) {
	text := fmt.Sprintf(format, append([]any{"topic " + topic}, args...)...)
	if same := func(have string) bool { return strings.HasSuffix(have, strings.TrimPrefix(text, "topic "+topic)) }; !slices.ContainsFunc(n.texts, same) {
		n.texts = append(n.texts, text)
	}
}

func (n *notes) String() string { return strings.Join(n.texts, "; ") }

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
	// Ordered says of a topic that all its messages have one order, so that it is made with one partition; nil is none.
	Ordered func(topic string) bool
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
	// AcceptNewKeys ends the keys in compacted topics whose form has changed, or that no mark has. Otherwise the first
	// is an error, and the second is told of.
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
	Retention   time.Duration     // 0 is the broker's
	Configs     map[string]string // further settings of topics, by Kafka's names

	// Whole refuses topics that do not keep the newest message of every key in one order: with several partitions, or
	// another cleanup.policy than compact.
	Whole bool

	// tells records of other clusters in topics that are to be written to; nil is that nobody looks
	Judge sink.Judge
	// Elsewhere says that the topic of a mark is written to by another exporter now; nil is that none is.
	Elsewhere func(topic string) bool
	Retry     sink.RetryFunc    // nil is nobody
	Notice    func(text string) // is told how the sink works, where a person may want to know; nil is nobody
	Warn      func(text string) // is told of what may be meant otherwise; nil is nobody
	Made      func(topics int)  // is told how many of LabelTopics there are, in Open and with each new one; nil is nobody
}

// cleanupPolicy is the setting by which a topic forgets.
const cleanupPolicy = "cleanup.policy"

// complete fills in the defaults, and checks the options. It reports all problems at once.
func (o *Options) complete() error {
	o.Delivery = cmp.Or(o.Delivery, Idempotent)
	o.Compression = cmp.Or(o.Compression, batch.Zstd.String())
	if o.Retry == nil {
		o.Retry = func(string, error) {}
	}
	for _, told := range []*func(string){&o.Notice, &o.Warn} {
		if *told == nil {
			*told = func(string) {}
		}
	}
	for _, why := range []*func(string) string{&o.Uncompacted, &o.Reserved} {
		if *why == nil {
			*why = func(string) string { return "" }
		}
	}
	if o.Made == nil {
		o.Made = func(int) {}
	}
	impossible := func(name string) bool { return slices.Contains(o.Found, name) && validTopic(name) != nil }
	o.Topics = slices.DeleteFunc(slices.Clone(o.Topics), impossible)
	var problems []error
	for _, name := range o.Topics {
		if err := validTopic(name); err != nil {
			problems = append(problems, fmt.Errorf("kafka.topic: %w", err))
		}
	}
	if o.Retention != 0 && o.Retention < time.Second {
		problems = append(problems, fmt.Errorf("kafka.retention is %s: use 1s or more, or 0 for the broker's default", o.Retention))
	}
	for name := range o.Configs {
		if name == cleanupPolicy && o.Cleanup != "" || name == "retention.ms" && o.Retention != 0 {
			problems = append(problems, fmt.Errorf("kafka.topicConfig: %s is also set by a key of its own: set one", name))
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

// spec is how a topic is made.
func (o *Options) spec(name string) wire.TopicSpec {
	configs := map[string]string{}
	maps.Copy(configs, o.Configs)
	if o.Cleanup != "" {
		configs[cleanupPolicy] = o.Cleanup
	}
	if o.Retention > 0 {
		configs["retention.ms"] = strconv.FormatInt(o.Retention.Milliseconds(), 10)
	}
	partitions := int32(o.Partitions)
	if o.Ordered != nil && o.Ordered(name) {
		partitions = 1
	}
	return wire.TopicSpec{Name: name, Partitions: partitions, Replication: int16(o.Replication), Configs: configs}
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
	look     time.Duration // between two looks at what others write, at most
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

// errUnsigned says that the right to write was taken, and that whoever took it has not shown that it lives.
var errUnsigned = errors.New("a request has taken the transactional id, and nobody uses it: either the request came late, " +
	"or another exporter is starting, or the transaction timed out")

var (
	errNothingRead  = errors.New("a fetch before the end of the log brought nothing")
	errUnreplicated = errors.New("the leader has records that are not replicated yet: if that lasts, start the brokers that are down")
	errThrottled    = errors.New("the quota of this client is used up, and the broker asks to wait: if that lasts, raise producer_byte_rate of the user or of client id kubecdc")
	errUndecided    = errors.New("a transaction is not decided yet: if that lasts, stop who left it open, or start the brokers that are down")
)

// reopenError ends a Write that only Open can go on from.
type reopenError struct{ error }

func (e *reopenError) Unwrap() error { return e.error }

func reopen(format string, args ...any) error { return &reopenError{fmt.Errorf(format, args...)} }

// topicError is what of this package's own rules speaks against one topic.
type topicError struct{ error }

func (e *topicError) Unwrap() error { return e.error }

// topicPermanent is permanent, and about one topic.
func topicPermanent(format string, args ...any) error {
	return &sink.PermanentError{Err: &topicError{fmt.Errorf(format, args...)}}
}

// missing is about a topic that is not there, and that the exporter may not make.
func missing(verb, topic string) error {
	return topicPermanent("%s topic %s: it does not exist: create it, or let the exporter do it with kafka.create", verb, topic)
}

// refusesTopic says whether the error is about one topic, and only a person can mend it.
func refusesTopic(err error) bool {
	switch wire.Code(err) {
	case kerr.InvalidTopicException.Code, kerr.TopicAuthorizationFailed.Code, kerr.InvalidPartitions.Code, kerr.InvalidReplicationFactor.Code, kerr.InvalidConfig.Code, kerr.PolicyViolation.Code:
		return true
	}
	return errors.As(err, new(*topicError))
}

// refused says whether the broker will never take the batch, and so has not taken it: the next one has its sequence.
func refused(err error) bool {
	if err == nil || decided(err) {
		return false
	}
	class := wire.Classify(err)
	return class == wire.TooLarge || class == wire.Invalid
}

// decided says whether the error is one of this package's, for which there is no further attempt.
func decided(err error) bool {
	return errors.As(err, new(*sink.PermanentError)) || errors.As(err, new(*reopenError))
}

func newBackOff() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(5*time.Millisecond), backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(0.5), backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(0))
}

// reason is a short word for an error, for a metric's label.
func reason(err error) string {
	switch {
	case errors.Is(err, errUnreplicated):
		return "unreplicated"
	case errors.Is(err, errUndecided):
		return "undecided"
	case errors.Is(err, errUnsigned):
		return "unsigned"
	}
	return wire.Reason(err)
}

// newKeys refuses to write under other keys than before.
func newKeys(topic, changed string) error {
	return sink.Permanent("open topic %s: the topic is compacted, and %s: it would keep objects as they were for ever: "+
		"change that back, or give the sink another name and other topics, or start once with --accept-new-keys, which ends the old keys and sends everything again",
		topic, changed)
}
