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
	Brokers []string `key:"brokers"`
	Topic   string   `key:"topic" default:"k8s.{cluster}.{resource}"`
	// Topics are templates of their own for some of the configuration's resources, by their spelling.
	Topics      map[string]string `key:"topics"`
	Key         string            `key:"key"`
	Headers     map[string]string `key:"headers"`
	Delivery    string            `key:"delivery" of:"idempotent transactional" default:"idempotent"`
	Compression string            `key:"compression" of:"zstd snappy lz4 gzip none" default:"zstd"`
	// TransactionalID has the right to write, which the newest exporter with it has; "" is made of cluster and sink.
	TransactionalID string    `key:"transactionalId"`
	Tombstones      *bool     `key:"tombstones" default:"true"`
	TLS             *TLS      `key:"tls"`
	SASL            *SASL     `key:"sasl"`
	Registry        *Registry `key:"registry"`
	Signals         *Signals  `key:"signals"`

	// The following are of topics that are created.
	Create            *bool    `key:"create" default:"true"`
	LabelTopics       int      `key:"labelTopics" default:"100" min:"1"`
	Partitions        int      `key:"partitions" min:"1"`
	Replication       int      `key:"replication" min:"1"`
	MinInsyncReplicas int      `key:"minInsyncReplicas" min:"1"`
	Cleanup           string   `key:"cleanup" of:"delete compact compact,delete" default:"delete"`
	Retention         Duration `key:"retention"`
	// TopicConfig is more of the topic's settings, by Kafka's names.
	TopicConfig map[string]string `key:"topicConfig"`

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
	to.TLS.check(k, path+".tls")
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
