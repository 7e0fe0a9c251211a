package kafka

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Listener is one way to reach a broker.
type Listener string

// The listeners a cluster can have.
const (
	Plaintext Listener = "PLAINTEXT"      // always there
	SASL      Listener = "SASL_PLAINTEXT" // PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER
	TLS       Listener = "SSL"            // no client certificate asked for
	MutualTLS Listener = "MTLS"           // a client certificate required; its common name is the user
	SASLTLS   Listener = "SASL_SSL"       // the mechanisms of SASL over TLS
	OtherName Listener = "OTHERNAME"      // TLS with a certificate of our CA for another host
	Behind1   Listener = "BEHIND1"        // PLAINTEXT, reached through a proxy of the test's: see Ways
	Behind2   Listener = "BEHIND2"        // the same for another client

	controller Listener = "CONTROLLER"
)

func protocols() map[Listener]string {
	return map[Listener]string{
		Plaintext: "PLAINTEXT", controller: "PLAINTEXT", Behind1: "PLAINTEXT", Behind2: "PLAINTEXT",
		SASL: "SASL_PLAINTEXT", SASLTLS: "SASL_SSL",
		TLS: "SSL", MutualTLS: "SSL", OtherName: "SSL",
	}
}

// clusterID is a UUID in Base64; every cluster of a test has the same.
const clusterID = "a3ViZWNkYy10ZXN0LTAwMQ"

// command runs a broker. Users of SCRAM are part of the format of a new one.
func (c *Cluster) command(n *node) []string {
	args := []string{n.properties(), clusterID}
	for _, name := range slices.Sorted(maps.Keys(c.options.Users)) {
		for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
			args = append(args, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", mechanism, name, c.options.Users[name]))
		}
	}
	return c.install.java("256m", "info", "Broker", args...)
}

// properties is a broker's server.properties.
func (c *Cluster) properties(n *node) []byte {
	config := c.basics(n)
	maps.Copy(config, c.listeners(n))
	if c.options.ACLs {
		config["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
		config["super.users"] = "User:ANONYMOUS;User:" + strings.Join(c.options.SuperUsers, ";User:")
	}
	maps.Copy(config, c.options.Config)
	var text bytes.Buffer
	for _, key := range slices.Sorted(maps.Keys(config)) {
		fmt.Fprintf(&text, "%s=%s\n", key, strings.ReplaceAll(config[key], `\`, `\\`))
	}
	return text.Bytes()
}

// basics are small buffers, few threads, and faults that are noticed in seconds:
// with Kafka's own timeouts a killed leader costs 9 to 12 s.
func (c *Cluster) basics(n *node) map[string]string {
	replicas, inSync := strconv.Itoa(len(c.nodes)), strconv.Itoa(len(c.nodes)/2+1)
	return map[string]string{
		"process.roles": "broker,controller", "node.id": strconv.Itoa(n.id), "log.dirs": n.dir + "/data",

		"default.replication.factor": replicas, "min.insync.replicas": inSync, "num.partitions": "1",
		"offsets.topic.replication.factor": replicas, "offsets.topic.num.partitions": "1",
		"transaction.state.log.replication.factor": replicas, "transaction.state.log.min.isr": inSync,
		"transaction.state.log.num.partitions":             strconv.Itoa(len(c.nodes)),
		"share.coordinator.state.topic.replication.factor": replicas, "share.coordinator.state.topic.min.isr": inSync,
		"auto.create.topics.enable": "false",
		// Retention goes by the records' own times, which tests choose as they like.
		"log.retention.ms": "-1",

		"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500",
		"controller.quorum.fetch.timeout.ms": "1000", "controller.quorum.election.timeout.ms": "500",
		"group.initial.rebalance.delay.ms": "0", "controlled.shutdown.enable": "true",

		"num.network.threads": "2", "num.io.threads": "4", "background.threads": "2",
		"log.cleaner.dedupe.buffer.size": "4194304", "log.cleaner.backoff.ms": "200",
		"log.initial.task.delay.ms": "500", "log.retention.check.interval.ms": "1000",
		"log.segment.delete.delay.ms": "1000",
		// A transaction that nobody ends is aborted within half a second of its timeout instead of ten.
		"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
	}
}

// listeners are addresses, mechanisms and certificates.
func (c *Cluster) listeners(n *node) map[string]string {
	var all, advertised, voters, kinds []string
	for _, l := range slices.Sorted(maps.Keys(n.ports)) {
		at := string(l) + "://" + address(n.ports[l])
		all, kinds = append(all, at), append(kinds, string(l)+":"+protocols()[l])
		if front := n.fronts[l]; front != 0 {
			at = string(l) + "://" + address(front)
		}
		if l != controller {
			advertised = append(advertised, at)
		}
	}
	for _, other := range c.nodes {
		voters = append(voters, strconv.Itoa(other.id)+"@"+address(other.ports[controller]))
	}
	config := map[string]string{
		"listeners": strings.Join(all, ","), "advertised.listeners": strings.Join(advertised, ","),
		"listener.security.protocol.map": strings.Join(kinds, ","), "controller.quorum.voters": strings.Join(voters, ","),
		"controller.listener.names": string(controller), "inter.broker.listener.name": string(Plaintext),
		"ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
	}
	for l := range n.ports {
		maps.Copy(config, c.tls(l))
		maps.Copy(config, c.sasl(l))
	}
	return config
}

func (c *Cluster) tls(l Listener) map[string]string {
	if !strings.HasSuffix(protocols()[l], "SSL") {
		return nil
	}
	keys, auth, prefix := c.certs.server, "none", "listener.name."+strings.ToLower(string(l))+".ssl."
	switch l {
	case MutualTLS:
		auth = "required"
	case OtherName:
		keys = c.certs.otherName
	}
	return map[string]string{
		prefix + "keystore.type": "PEM", prefix + "keystore.location": keys,
		prefix + "truststore.type": "PEM", prefix + "truststore.location": c.certs.CA,
		prefix + "client.auth": auth,
	}
}

func (c *Cluster) sasl(l Listener) map[string]string {
	if !strings.HasPrefix(protocols()[l], "SASL") {
		return nil
	}
	const security = "org.apache.kafka.common.security."
	plain := security + "plain.PlainLoginModule required"
	for _, name := range slices.Sorted(maps.Keys(c.options.Users)) {
		plain += fmt.Sprintf(" user_%s=%q", name, c.options.Users[name])
	}
	prefix := "listener.name." + strings.ToLower(string(l)) + "."
	return map[string]string{
		prefix + "sasl.enabled.mechanisms":        "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
		prefix + "plain.sasl.jaas.config":         plain + ";",
		prefix + "scram-sha-256.sasl.jaas.config": security + "scram.ScramLoginModule required;",
		prefix + "scram-sha-512.sasl.jaas.config": security + "scram.ScramLoginModule required;",
		prefix + "oauthbearer.sasl.jaas.config":   security + `oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";`,
	}
}
