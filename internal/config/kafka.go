package config

import (
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Kafka is a destination in Apache Kafka.
type Kafka struct {
	Brokers []string `key:"brokers" like:"broker" need:"brokers such as [kafka-0:9092, kafka-1:9092]" effect:"broker"`
	Topic   string   `key:"topic" like:"topic" place:"topic" default:"k8s.{cluster}.{resource}"`
	// Topics are templates of their own for some of the configuration's resources, by their spelling.
	Topics      map[string]string `key:"topics" like:"topic" place:"topic"`
	Key         string            `key:"key"`
	Headers     map[string]string `key:"headers" effect:"new"`
	Delivery    string            `key:"delivery" of:"idempotent transactional" default:"idempotent" effect:"new"`
	Compression string            `key:"compression" of:"zstd snappy lz4 gzip none" default:"zstd"`
	// TransactionalID has the right to write, which the newest exporter with it has; "" is made of cluster and sink.
	TransactionalID string `key:"transactionalId" place:"fixed" effect:"fence"`
	Tombstones      *bool  `key:"tombstones" default:"true" effect:"new"`
	// Frames are what speaks of a resource and not of an object: gaps, and where snapshots begin and end. "" is as the
	// format's readers need it.
	Frames   string    `key:"frames" of:"topic inline" effect:"new"`
	TLS      *TLS      `key:"tls"`
	SASL     *SASL     `key:"sasl"`
	Registry *Registry `key:"registry" effect:"form"`
	Signals  *Signals  `key:"signals"`

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

func (to *Kafka) check(k *checker, path string) {
	to.checkTemplate(k, path+".topic", to.Topic)
	for _, name := range slices.Sorted(maps.Keys(to.Topics)) {
		to.checkTemplate(k, under(path+".topics", name), to.Topics[name])
	}
	to.checkKey(k, path+".key")
	checkHeaders(k, path+".headers", to.Headers)
	k.problemIf(to.Replication > 0 && to.MinInsyncReplicas > to.Replication, path+".minInsyncReplicas",
		"%d of %d replicas can never be in sync; lower it, or raise replication", to.MinInsyncReplicas, to.Replication)
	if to.SASL != nil {
		to.SASL.check(k, path+".sasl")
	}
	if to.Registry != nil {
		to.Registry.check(k, path+".registry")
	}
}

// checkTemplate checks a template of topics. In a compacted topic an object whose label changes would stay for ever as
// it was.
func (to *Kafka) checkTemplate(k *checker, path, template string) {
	switch {
	case checkTopic(template) != nil: // which is a problem already
	case to.Compacts() && hasLabel(template, nil):
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
	const fixed = "allowed: {cluster}, {group}, {kind}, {resource}, {namespace}, {name}"
	switch _, err := withoutPlaceholders(to.Key); {
	case to.Key == "":
	case err != nil:
		k.problem(path, "%v", err)
	case hasLabel(to.Key, nil):
		k.problem(path, "a label can change, and the object's records would be in two partitions, in no order; %s", fixed)
	case strings.Contains(to.Key, "{version}"):
		k.problem(path, "the version can change, and the object's records would be in two partitions, in no order; %s", fixed)
	case to.Compacts() && !strings.Contains(to.Key, objectName):
		k.problem(path, "objects with one key would delete each other in a compacted topic; have %s in it, or use cleanup: delete", objectName)
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

// Registry is a registry of schemas with the API of Confluent's, which the sink's values have then.
type Registry struct {
	URL           string `key:"url" need:"an address such as http://registry:8081" effect:"new"`
	User          string `key:"user" with:"password"`
	Password      Secret `key:"password"`
	Token         Secret `key:"token"`
	TLS           TLS    `key:"tls"`
	Subject       string `key:"subject" of:"topic record topic-record" default:"topic" effect:"new"`
	Columns       string `key:"columns" of:"nested json" default:"nested" effect:"new"`
	Register      *bool  `key:"register" default:"true" effect:"schemas"`
	Compatibility string `key:"compatibility" of:"backward backward_transitive forward forward_transitive full full_transitive none"`
}

// URLs are the addresses.
func (r *Registry) URLs() []string {
	var all []string
	for address := range strings.SplitSeq(r.URL, ",") {
		all = append(all, strings.TrimRight(strings.TrimSpace(address), "/"))
	}
	return all
}

// check checks how the registry is asked.
func (r *Registry) check(k *checker, path string) {
	for _, address := range r.URLs() {
		at, err := url.Parse(address)
		switch {
		case r.URL == "":
		case err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" || at.RawQuery != "" || at.Fragment != "":
			k.problem(under(path, "url"), "want http://HOST:PORT or https://HOST:PORT, perhaps with a path, have %q", shorten(withoutLogin(address)))
		case at.User != nil:
			k.problem(under(path, "url"), "a login is not part of it; write it as user and password")
		}
	}
	k.problemIf(r.User != "" && r.Token != "", under(path, "token"), "a token here and a user; leave one out")
}

// Signals are the topics by which others ask, and are told what becomes of it. Both names may have {cluster} in them.
type Signals struct {
	Topic         string `key:"topic" like:"fixed topic" place:"template" default:"kubecdc-signals"`
	Notifications string `key:"notifications" like:"fixed topic"`
}

// SASL is a login to Kafka.
type SASL struct {
	Mechanism    string `key:"mechanism" need:"a way to log in, such as SCRAM-SHA-512" of:"PLAIN SCRAM-SHA-256 SCRAM-SHA-512 OAUTHBEARER AWS_MSK_IAM"`
	User         string `key:"user"`
	Password     Secret `key:"password"`
	PasswordFile string `key:"passwordFile"`
	OAuth        *OAuth `key:"oauth"`
	Region       string `key:"region"`
}

// OAuth is where tokens come from, by the client credentials grant (RFC 6749, 4.4).
type OAuth struct {
	TokenURL         string            `key:"tokenUrl" need:"the address that tokens are requested at"`
	ClientID         string            `key:"clientId" need:"whose tokens are requested"`
	ClientSecret     Secret            `key:"clientSecret"`
	ClientSecretFile string            `key:"clientSecretFile"`
	Scopes           []string          `key:"scopes"`
	Audience         string            `key:"audience"`
	CA               string            `key:"ca"`
	Extensions       map[string]string `key:"extensions"`
}

// check checks that the login has what its mechanism needs, and nothing that another one needs.
func (s *SASL) check(k *checker, path string) {
	if !slices.Contains(allowedBy[SASL]("mechanism"), s.Mechanism) {
		return
	}
	token, region := s.Mechanism == oauthBearer, s.Mechanism == mskIAM
	for _, f := range []struct {
		key                    string
		given, known, optional bool
	}{
		{"user", s.User != "", !token && !region, false},
		{"password", s.Password != "" || s.PasswordFile != "", !token && !region, false},
		{"oauth", s.OAuth != nil, token, false},
		{"region", s.Region != "", region, true},
	} {
		switch {
		case f.given && !f.known:
			k.problem(path+"."+f.key, "mechanism %s has no %s; leave it out", s.Mechanism, f.key)
		case !f.given && f.known && !f.optional:
			k.problem(path+"."+f.key, "missing; mechanism %s needs it", s.Mechanism)
		}
	}
	k.problemIf(s.Password != "" && s.PasswordFile != "", path+".passwordFile", "a password here and in password; leave one out")
	if o := s.OAuth; o != nil && token {
		at := path + ".oauth"
		k.problemIf(o.ClientSecret == "" && o.ClientSecretFile == "", at+".clientSecret", "missing; a token cannot be requested without it")
		k.problemIf(o.ClientSecret != "" && o.ClientSecretFile != "", at+".clientSecretFile",
			"a secret here and in clientSecret; leave one out")
	}
}
