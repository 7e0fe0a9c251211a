package config

import (
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Kafka is a destination in Apache Kafka.
type Kafka struct {
	Brokers []string // host:port of some; the others are found
	Topic   string   // template of placeholders
	// Topics are templates of their own for some of the configuration's resources, by their spelling.
	Topics      map[string]string
	Key         string            // template of an object's key; "" is that of the format
	Headers     map[string]string // templates by their names
	Delivery    string            // one of deliveries
	Compression string            // one of compressions
	// TransactionalID has the right to write, which the newest exporter with it has; "" is made of cluster and sink.
	TransactionalID string
	Tombstones      *bool     // a message without a value after each delete
	TLS             *TLS      // nil is in the clear
	SASL            *SASL     // nil is no login
	Registry        *Registry // of schemas; nil writes JSON
	Signals         *Signals  // by which others ask; nil is none

	// The following are of topics that are created.
	Create            *bool // create what is missing
	LabelTopics       int   // how many at most, because a label says so
	Partitions        int
	Replication       int
	MinInsyncReplicas int
	Cleanup           string   // one of cleanups
	Retention         Duration // with the three above: 0 leaves it to the broker
	// TopicConfig is more of the topic's settings, by Kafka's names.
	TopicConfig map[string]string

	// Reserved says of topics what they are for, so that there must be no records in them: signals and the log of the
	// state. It is no key; the names may have {cluster} in them.
	Reserved map[string]string
}

// TopicSettings are the settings of topics that are created, by Kafka's names, beside those that have keys of their own
// in sinks.
func (to *Kafka) TopicSettings() map[string]string {
	settings := maps.Clone(to.TopicConfig)
	if to.MinInsyncReplicas > 0 {
		if settings == nil {
			settings = map[string]string{}
		}
		settings["min.insync.replicas"] = strconv.Itoa(to.MinInsyncReplicas)
	}
	return settings
}

func (to *Kafka) keys() []key {
	return []key{
		{"brokers", list(&to.Brokers), "Needed. Some of the brokers, each `host:port`; the others are found."},
		{"topic", textOr(&to.Topic, "k8s.{cluster}.{resource}"),
			"Template of topics, with {cluster}, {group}, {resource}, {namespace}, {name}, {version}, {kind} and " +
				"{label:KEY}. A label and {version} are refused in a compacted topic, and so are resources that share one, " +
				"unless the key has {resource} in it."},
		{"topics", dictionary(&to.Topics),
			"Other templates for some resources, spelled as in `resources`."},
		{"key", text(&to.Key),
			"Template of an object's key, with the placeholders of topics that never change for an object: no label and " +
				"no {version}. Objects with one key share a partition. In a compacted topic, and in the format `object`, " +
				"it has {namespace}/{name} in it. Without it, `namespace/name`. Not with the format `debezium`."},
		{"headers", dictionary(&to.Headers),
			"Headers of every message: templates by name, with the placeholders of topics, labels too."},
		{"delivery", firstOf(&to.Delivery, deliveries()),
			"How records become durable once: by the producer's sequence numbers, or by one transaction per batch " +
				"(readers set `isolation.level=read_committed`)."},
		{"compression", firstOf(&to.Compression, compressions()), "Codec of record batches."},
		{"transactionalId", text(&to.TransactionalID),
			"An exporter that starts with the same id fences the older one, with both values of `delivery`. Without " +
				"it, `kubecdc-CLUSTER-SINK`, with `=2D` for each `-` in the cluster's name."},
		{"tombstones", choice(&to.Tombstones),
			"Write a record without a value after each delete, so that a compacted topic forgets the object."},
		{"tls", optional(&to.TLS), "TLS. `tls: {}` trusts the system's authorities. Without it, no encryption."},
		{"sasl", optional(&to.SASL), "A login. Without it, none."},
		{"registry", optional(&to.Registry),
			"A schema registry. Values are Avro then, with the schemas of the API server: [registry.md](registry.md)."},
		{"signals", optional(&to.Signals),
			"Others can ask for snapshots with Debezium's signals: [signals.md](signals.md). Whoever may write to the " +
				"topic may ask. Without it, nobody can."},
		{"create", choice(&to.Create), "Create missing topics. The keys below apply to them."},
		{"labelTopics", or(&to.LabelTopics, counts(1, unlimited), "100"),
			"How many topics {label:KEY} and {name} in `topic` or `topics` may create. Records for further topics " +
				"become dead letters."},
		{"partitions", counts(1, unlimited).into(&to.Partitions),
			"Partitions of a created topic. Without it, the broker's default."},
		{"replication", counts(1, unlimited).into(&to.Replication),
			"Replicas of a created topic. Without it, the broker's default."},
		{"minInsyncReplicas", counts(1, unlimited).into(&to.MinInsyncReplicas),
			"How many replicas must have a record before it is acknowledged. Without it, the broker's default."},
		{"cleanup", firstOf(&to.Cleanup, cleanups()),
			"`cleanup.policy` of a created topic. A table is `compact`: with `compact,delete`, objects that do not change " +
				"are gone after the retention, unless `resync` comes before that."},
		{"retention", durations(0).into(&to.Retention),
			"How long a created topic keeps records. Without it, the broker's default."},
		{"topicConfig", dictionary(&to.TopicConfig), "More settings of a created topic, by Kafka's names."},
	}
}

func (to *Kafka) check(k *checker, path string) {
	if len(to.Brokers) == 0 {
		k.problem(path+".brokers", "missing; want brokers such as [kafka-0:9092, kafka-1:9092]")
	}
	for i, broker := range to.Brokers {
		if !isBroker(broker) {
			k.problem(item(path+".brokers", i), "want host:port, have %q", shorten(withoutLogin(broker)))
		}
	}
	to.checkTemplate(k, path+".topic", to.Topic)
	for _, name := range slices.Sorted(maps.Keys(to.Topics)) {
		to.checkTemplate(k, under(path+".topics", name), to.Topics[name])
	}
	to.checkKey(k, path+".key")
	checkHeaders(k, path+".headers", to.Headers)
	if to.TLS != nil && to.TLS.isHalf() {
		k.problem(path+".tls", "cert and key go together; give both or neither")
	}
	if to.Replication > 0 && to.MinInsyncReplicas > to.Replication {
		k.problem(path+".minInsyncReplicas", "%d of %d replicas can never be in sync; lower it, or raise replication", to.MinInsyncReplicas, to.Replication)
	}
	if to.SASL != nil {
		to.SASL.check(k, path+".sasl")
	}
	if to.Registry != nil {
		to.Registry.check(k, path+".registry")
	}
	if to.Signals != nil {
		to.Signals.check(k, path+".signals")
	}
}

// checkTemplate checks a template of topics. In a compacted topic an object whose label changes would stay for ever as
// it was.
func (to *Kafka) checkTemplate(k *checker, path, template string) {
	if err := checkTopic(template); err != nil {
		k.problem(path, "%v", err)
		return
	}
	switch {
	case to.Compacts() && hasLabel(template):
		k.problem(path, "a label can change, and a compacted topic would keep the object as it was before; leave out the label, or use cleanup: delete")
	case to.Compacts() && strings.Contains(template, "{version}"):
		k.problem(path, "the version can change, and a compacted topic would keep the object as it was before; leave out {version}, or use cleanup: delete")
	}
	if what := to.Reserved[template]; what != "" {
		k.problem(path, "%q is %s, and records would destroy that; choose another topic", shorten(template), what)
	}
}

// Compacts says whether topics are made that keep the last record of each key.
func (to *Kafka) Compacts() bool {
	return strings.Contains(to.Cleanup, "compact") || strings.Contains(to.TopicConfig["cleanup.policy"], "compact")
}

// checkKey checks a template of keys: all records of an object must have one, which in a compacted topic no other
// object has.
func (to *Kafka) checkKey(k *checker, path string) {
	if to.Key == "" {
		return
	}
	if _, err := withoutPlaceholders(to.Key); err != nil {
		k.problem(path, "%v", err)
		return
	}
	const fixed = "allowed: {cluster}, {group}, {kind}, {resource}, {namespace}, {name}"
	switch {
	case hasLabel(to.Key):
		k.problem(path, "a label can change, and the object's records would be in two partitions, in no order; %s", fixed)
	case strings.Contains(to.Key, "{version}"):
		k.problem(path, "the version can change, and the object's records would be in two partitions, in no order; %s", fixed)
	case to.Compacts() && !strings.Contains(to.Key, objectName):
		k.problem(path, "objects with one key would delete each other in a compacted topic; have %s in it, or use cleanup: delete", objectName)
	}
}

// routes are the templates of topics.
func (to *Kafka) routes() routes { return routes{key: "topics", own: to.Topics, common: to.Topic} }

// checkFormat checks that the sink's format goes with keys of a template.
func (to *Kafka) checkFormat(k *checker, path, format string) {
	switch {
	case to.Key == "":
	case format == formatDebezium:
		k.problem(path, "the format debezium has keys of its own; leave it out, or choose another format")
	case format == formatObject && !strings.Contains(to.Key, objectName):
		k.problem(path, "in the format object the key alone says what a delete deletes; have %s in it, or choose another format", objectName)
	}
}

// objectName is what tells the objects of a resource apart.
const objectName = "{namespace}/{name}"

func isBroker(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" || strings.ContainsFunc(host, isBlank) || strings.ContainsAny(host, "/@?,") {
		return false
	}
	number, err := strconv.ParseUint(port, 10, 16)
	return err == nil && number > 0
}
