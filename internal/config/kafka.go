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
	Brokers []string `json:"brokers"` // host:port of some; the others are found
	Topic   string   `json:"topic"`   // template of Placeholders
	// Topics are templates of their own for some of the configuration's resources, by their spelling.
	Topics      map[string]string `json:"topics,omitempty"`
	Delivery    string            `json:"delivery"`    // one of Deliveries
	Compression string            `json:"compression"` // one of Compressions
	// TransactionalID fences an older exporter off; "" is made of cluster and sink. Only of transactional delivery.
	TransactionalID string `json:"transactionalId,omitzero"`
	Tombstones      *bool  `json:"tombstones"`     // a message without a value behind each delete
	TLS             *TLS   `json:"tls,omitempty"`  // nil is in the clear; First has no meaning
	SASL            *SASL  `json:"sasl,omitempty"` // nil is no login

	// The following are of topics that are created.
	Create            *bool    `json:"create"` // create what is missing
	Partitions        int      `json:"partitions,omitzero"`
	Replication       int      `json:"replication,omitzero"`
	MinInsyncReplicas int      `json:"minInsyncReplicas,omitzero"`
	Cleanup           string   `json:"cleanup"`            // one of Cleanups
	Retention         Duration `json:"retention,omitzero"` // with the three above: 0 leaves it to the broker
	// TopicConfig is more of the topic's settings, by Kafka's names.
	TopicConfig map[string]string `json:"topicConfig,omitempty"`
}

// SASL is a login to Kafka.
type SASL struct {
	Mechanism    string `json:"mechanism"` // one of Mechanisms
	User         string `json:"user,omitzero"`
	Password     Secret `json:"password,omitzero"`
	PasswordFile string `json:"passwordFile,omitzero"` // read again when it changes
	OAuth        *OAuth `json:"oauth,omitempty"`       // of OAUTHBEARER
	Region       string `json:"region,omitzero"`       // of AWS_MSK_IAM
}

// OAuth is where tokens come from, by the client credentials grant (RFC 6749, 4.4).
type OAuth struct {
	TokenURL         string            `json:"tokenUrl"`
	ClientID         string            `json:"clientId"`
	ClientSecret     Secret            `json:"clientSecret,omitzero"`
	ClientSecretFile string            `json:"clientSecretFile,omitzero"` // read again when it changes
	Scopes           []string          `json:"scopes,omitempty"`
	Audience         string            `json:"audience,omitzero"`
	CA               string            `json:"ca,omitzero"`          // of the token's server; "" trusts the system's authorities
	Extensions       map[string]string `json:"extensions,omitempty"` // SASL extensions (KIP-342)
}

// TopicSettings are the settings of topics that are created, by Kafka's names, beside those that have keys of their own
// in sinks.
func (k *Kafka) TopicSettings() map[string]string {
	settings := maps.Clone(k.TopicConfig)
	if k.MinInsyncReplicas > 0 {
		if settings == nil {
			settings = map[string]string{}
		}
		settings["min.insync.replicas"] = strconv.Itoa(k.MinInsyncReplicas)
	}
	return settings
}

func (k *Kafka) fillIn() {
	fill(&k.Topic, defaultTopic)
	fill(&k.Delivery, Deliveries()[0])
	fill(&k.Compression, Compressions()[0])
	fill(&k.Cleanup, Cleanups()[0])
	yes := true
	fill(&k.Tombstones, &yes)
	fill(&k.Create, &yes)
}

func (d *decoder) kafka(path string, n *node) *Kafka {
	var to Kafka
	d.mapping(path, n, map[string]reader{
		"brokers":           d.texts(&to.Brokers),
		"topic":             d.text(&to.Topic),
		"topics":            d.dictionary(&to.Topics),
		"delivery":          d.text(&to.Delivery),
		"compression":       d.text(&to.Compression),
		"transactionalId":   d.text(&to.TransactionalID),
		"tombstones":        d.choice(&to.Tombstones),
		"tls":               func(path string, n *node) { to.TLS = d.kafkaTLS(path, n) },
		"sasl":              func(path string, n *node) { to.SASL = d.sasl(path, n) },
		"create":            d.choice(&to.Create),
		"partitions":        d.count(&to.Partitions, 1, unlimited),
		"replication":       d.count(&to.Replication, 1, unlimited),
		"minInsyncReplicas": d.count(&to.MinInsyncReplicas, 1, unlimited),
		"cleanup":           d.text(&to.Cleanup),
		"retention":         d.duration(&to.Retention),
		"topicConfig":       d.dictionary(&to.TopicConfig),
	})
	return &to
}

// choice reads a boolean whose default is not false.
func (d *decoder) choice(into **bool) reader {
	return func(path string, n *node) {
		if n != nil {
			*into = new(bool)
			d.boolean(*into)(path, n)
		}
	}
}

// kafkaTLS is in use when the key is there, also without a value.
func (d *decoder) kafkaTLS(path string, n *node) *TLS {
	var to TLS
	d.mapping(path, n, map[string]reader{
		"ca":         d.text(&to.CA),
		"cert":       d.text(&to.Cert),
		"key":        d.text(&to.Key),
		"serverName": d.text(&to.ServerName),
	})
	return &to
}

func (d *decoder) sasl(path string, n *node) *SASL {
	var to SASL
	d.mapping(path, n, map[string]reader{
		"mechanism":    d.text(&to.Mechanism),
		"user":         d.text(&to.User),
		"password":     d.secret(&to.Password),
		"passwordFile": d.text(&to.PasswordFile),
		"oauth":        func(path string, n *node) { to.OAuth = d.oauth(path, n) },
		"region":       d.text(&to.Region),
	})
	return &to
}

func (d *decoder) oauth(path string, n *node) *OAuth {
	var to OAuth
	d.mapping(path, n, map[string]reader{
		"tokenUrl":         d.text(&to.TokenURL),
		"clientId":         d.text(&to.ClientID),
		"clientSecret":     d.secret(&to.ClientSecret),
		"clientSecretFile": d.text(&to.ClientSecretFile),
		"scopes":           d.texts(&to.Scopes),
		"audience":         d.text(&to.Audience),
		"ca":               d.text(&to.CA),
		"extensions":       d.dictionary(&to.Extensions),
	})
	return &to
}

func (k *checker) kafka(path string, to *Kafka) {
	if len(to.Brokers) == 0 {
		k.problem(path+".brokers", "missing; want brokers such as [kafka-0:9092, kafka-1:9092]")
	}
	for i, broker := range to.Brokers {
		if !isBroker(broker) {
			k.problem(item(path+".brokers", i), "want host:port, have %q", shorten(withoutLogin(broker)))
		}
	}
	k.topic(path+".topic", to.Topic, to)
	for _, name := range slices.Sorted(maps.Keys(to.Topics)) {
		k.topic(under(path+".topics", name), to.Topics[name], to)
	}
	k.oneOf(path+".delivery", to.Delivery, Deliveries())
	k.oneOf(path+".compression", to.Compression, Compressions())
	k.oneOf(path+".cleanup", to.Cleanup, Cleanups())
	if to.TransactionalID != "" && to.Delivery != Transactional {
		k.problem(path+".transactionalId", "only delivery %s has one; leave it out, or change delivery", Transactional)
	}
	if to.TLS != nil && (to.TLS.Cert == "") != (to.TLS.Key == "") {
		k.problem(path+".tls", "cert and key go together; give both or neither")
	}
	if to.Replication > 0 && to.MinInsyncReplicas > to.Replication {
		k.problem(path+".minInsyncReplicas", "%d of %d replicas can never be in sync; lower it, or raise replication", to.MinInsyncReplicas, to.Replication)
	}
	if to.SASL != nil {
		k.sasl(path+".sasl", to.SASL)
	}
}

// topic checks a template. In a compacted topic an object whose label changes would stay for ever as it was.
func (k *checker) topic(path, template string, to *Kafka) {
	if err := checkTopic(template); err != nil {
		k.problem(path, "%v", err)
		return
	}
	compacted := strings.Contains(to.Cleanup, "compact") || strings.Contains(to.TopicConfig["cleanup.policy"], "compact")
	if compacted && hasLabel(template) {
		k.problem(path, "a label can change, and a compacted topic would keep the object as it was before; leave out the label, or use cleanup: delete")
	}
}

// sasl checks that the login has what its mechanism needs, and nothing that another one needs.
func (k *checker) sasl(path string, s *SASL) {
	if err := oneOf(s.Mechanism, Mechanisms()); err != nil {
		k.problem(path+".mechanism", "%v", err)
		return
	}
	token, region := s.Mechanism == OAuthBearer, s.Mechanism == MSKIAM
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
	if s.Password != "" && s.PasswordFile != "" {
		k.problem(path+".passwordFile", "a password here and in password; leave one out")
	}
	if s.OAuth != nil && token {
		k.oauth(path+".oauth", s.OAuth)
	}
}

func (k *checker) oauth(path string, o *OAuth) {
	for _, f := range []struct {
		key   string
		given bool
	}{
		{"tokenUrl", o.TokenURL != ""}, {"clientId", o.ClientID != ""}, {"clientSecret", o.ClientSecret != "" || o.ClientSecretFile != ""},
	} {
		if !f.given {
			k.problem(path+"."+f.key, "missing; a token is got with it")
		}
	}
	if o.ClientSecret != "" && o.ClientSecretFile != "" {
		k.problem(path+".clientSecretFile", "a secret here and in clientSecret; leave one out")
	}
}

func isBroker(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" || strings.ContainsFunc(host, isBlank) || strings.ContainsAny(host, "/@?") {
		return false
	}
	number, err := strconv.ParseUint(port, 10, 16)
	return err == nil && number > 0
}
