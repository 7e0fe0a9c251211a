package badinput

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/natsserver"
)

// mistake is what somebody writes who has read the documents, once, and what exporter check says to it.
type mistake struct {
	what   string
	flags  string // in place of a configuration; "-f config.yaml" is added where there is one
	config string
	says   string // a line of the output: what is wrong, where, and what to change
}

// with is a configuration with its resources.
func with(lines string) string { return "resources: [configmaps]\n" + lines }

// kept is one whose objects are kept.
func kept(lines string) string { return "resources: [{resource: configmaps, before: true}]\n" + lines }

// about has Events that tell a sink of config maps.
func about(involved, sink string) string {
	return fmt.Sprintf("resources: [{resource: configmaps, before: true},\n  {resource: events, involved: %s}]\nsinks: [{name: out, %s}]\n", involved, sink)
}

// told is a sink that is told of users.
const told = "sinks: [{name: screen, actors: true, file: {path: \"-\"}}]\n"

// audited receives users at the address.
func audited(address, more string) string {
	return fmt.Sprintf("audit: {listen: %q, tls: {cert: tls.crt, key: tls.key}, %s}\n", address, more)
}

const screen = "sinks: [{name: screen, file: {path: \"-\"}}]\n"

// writing are mistakes that the text alone shows.
func writing() []mistake {
	return []mistake{
		{"a misspelt flag", "--resurces configmaps --sink -", "",
			"exporter: unknown flag: --resurces: did you mean --resources? see exporter check --help"},
		{"a flag without what it needs", "--resources configmaps --sink - --log-level loud", "",
			`exporter: command line: --log-level: unknown value "loud"; allowed: debug, info, warn, error`},
		{"a sink that is no URL", "--resources configmaps --sink localhost:4222", "",
			"exporter: command line: --sink localhost:4222: want file:///path/out.ndjson, - (standard output), kafka://host:9092,host:9092, nats://host:4222?stream=NAME or tls://host:4222?stream=NAME"},
		{"a configuration that is not there", "-f konfig.yaml", "",
			"exporter: configuration konfig.yaml: read the file: no such file or directory; correct the path that --config gives, or the rights of the file"},
		{"a misspelt key", "", with("sinks: [{name: out, file: {pth: out}}]\n"),
			"sinks[0].file.pth (line 2): unknown key; did you mean path? allowed: keep, path, rotate"},
		{"a key in the wrong place", "", with("sinks: [{name: lake, replication: 3, kafka: {brokers: [\"x:9092\"]}}]\n"),
			"sinks[0].replication (line 2): unknown key; allowed: actors, deadLetter, "},
		{"a unit that there is not", "", with("sinks: [{name: out, file: {path: out}, queue: {bytes: 64MB}}]\n"),
			`exporter: configuration config.yaml: sinks[0].queue.bytes (line 2): want a size such as 64Mi, have "64MB"`},
		{"a length of time without a unit", "", with("discovery: {interval: 30}\n" + screen),
			"exporter: configuration config.yaml: discovery.interval (line 2): want a length of time such as 10h or 1h30m, have 30"},
		{"a tab for indentation", "", with("sinks:\n\t- name: out\n"),
			"exporter: configuration config.yaml: line 3: indented with a tab; YAML wants spaces"},
		{"a wrong indentation", "", with("sinks:\n  - name: out\n  file: {path: out}\n"),
			"line 3: not YAML: did not find expected '-' indicator; look at the indentation, brackets and quotes of this line and of the one before"},
		{"a list that is none", "", "resources: pods\n" + screen,
			`exporter: configuration config.yaml: resources (line 1): want a list, have "pods"`},
		{"a resource twice", "", "resources: [configmaps, {resource: configmaps, namespaces: [a]}]\n" + screen,
			"exporter: configuration config.yaml: resources[1] (line 1): configmaps is named already in resources[0]; list all its namespaces there, or put this one first"},
		{"a namespace that can be none", "", "resources: [{resource: configmaps, namespaces: [My_Shop]}]\n" + screen,
			`exporter: configuration config.yaml: resources[0].namespaces[0] (line 1): "My_Shop" cannot be a namespace; want lower case letters, digits and -`},
		{"two sinks of one name", "", with("sinks: [{name: out, file: {path: a}}, {name: out, file: {path: b}}]\n"),
			`exporter: configuration config.yaml: sinks[1].name (line 2): "out" is the name of sinks[0] already; give each sink its own`},
		{"a format that there is not", "", with("sinks: [{name: out, format: json, file: {path: out}}]\n"),
			`exporter: configuration config.yaml: sinks[0].format (line 2): unknown value "json"; allowed: cloudevents, cloudevents-binary, debezium, object`},
		{"a variable that is not set", "", with("sinks: [{name: bus, nats: {url: \"nats://127.0.0.1:1\", user: me, password: \"${NATS_PASSWORD}\"}}]\n"),
			"exporter: configuration config.yaml: sinks[0].nats.password (line 2): environment variable NATS_PASSWORD is not set; set it, or write $${NATS_PASSWORD} for the plain text"},
		{"an address without a port", "", with("listen: \"8080\"\n" + screen),
			`exporter: configuration config.yaml: listen (line 2): want an address such as :8080 or 127.0.0.1:8080, have "8080"`},
		{"a placeholder that there is not", "", with("sinks: [{name: lake, kafka: {brokers: [\"x:9092\"], topic: \"k8s.{kind}.{team}\"}}]\n"),
			"sinks[0].kafka.topic (line 2): unknown placeholder {team}; allowed: {cluster}, "},
		{"labels in a compacted topic", "", with("sinks: [{name: lake, kafka: {brokers: [\"x:9092\"], topic: \"k.{label:team}\", cleanup: compact}}]\n"),
			"a label can change, and a compacted topic would keep the object as it was before; leave out the label, or use cleanup: delete"},
		{"cuts without oversize", "", with("sinks: [{name: out, file: {path: out}, trim: [.data]}]\n"),
			"exporter: configuration config.yaml: sinks[0].trim (line 2): needs oversize: trim; set that, or leave it out"},
		{"a sink for a resource that nobody reads", "", with("sinks: [{name: out, resources: [pods], file: {path: out}}]\n"),
			`exporter: configuration config.yaml: sinks[0].resources[0] (line 2): "pods" is not watched; write it as in resources: configmaps`},
		{"another field of what Events are about", "", about("[annotations]", "file: {path: out}"),
			`exporter: configuration config.yaml: resources[1].involved[0] (line 2): unknown value "annotations"; allowed: labels, ownerReferences`},
		{"what an object that is no Event is about", "", "resources: [{resource: configmaps, before: true, involved: [labels]}]\n" + screen,
			"exporter: configuration config.yaml: resources[0].involved (line 1): an object of configmaps is about no other one; leave it out, or put it at events"},
		{"Events about what is not kept", "", "resources: [configmaps, {resource: events, involved: [labels]}]\n" + screen,
			"exporter: configuration config.yaml: resources[1].involved (line 1): no object is kept that an Event could be about; add before: true to its resource, such as pods, or leave it out"},
		{"Events about what the sink does not take", "", about("[labels]", "resources: [events], file: {path: out}"),
			"exporter: configuration config.yaml: sinks[0].resources (line 3): its events would tell it of configmaps, which it does not take; add configmaps, or leave involved out of the events"},
		{"Events about what the sink's filter leaves out", "", about("[labels]", "filter: 'true', file: {path: out}"),
			"exporter: configuration config.yaml: sinks[0].filter (line 3): its events would tell it of objects that the filter leaves out; put the filter at the resources, or leave involved out of the events"},
	}
}

// world are mistakes that only the cluster, the machine and the brokers show.
func world(d *desk, address string, bus *broker) []mistake {
	secured := "nats: {url: \"" + bus.URL() + "\", user: me, password: wrong}"
	return []mistake{
		{"a misspelt resource", "", "resources: [configmap, deplyments]\n" + screen,
			`problem  resource "deplyments": the API server serves no such resource: did you mean deployments? see kubectl api-resources`},
		{"a group that is left out", "", "resources: [deployments.app]\n" + screen,
			"ok       resource deployments.apps"},
		{"a definition that must be there", "", "resources: [{resource: gears.example.com, required: true}]\n" + screen,
			`problem  resource "gears.example.com": the API server serves no such resource: see kubectl api-resources`},
		{"a definition that is not there yet", "", "resources: [gears.example.com]\n" + screen,
			"note     resource gears.example.com waits: the API server does not serve it yet"},
		{"a namespace that is not there", "", "resources: [{resource: configmaps, namespaces: [shpo]}]\n" + screen,
			"note     namespace shpo does not exist: nothing will come from shpo/configmaps until somebody creates it"},
		{"namespaces of what has none", "", "resources: [{resource: nodes, namespaces: [default]}]\n" + screen,
			`problem  resource "nodes": it is cluster-scoped and has no namespaces: leave out namespaces default`},
		{"a selector that is none", "", "resources: [{resource: configmaps, labelSelector: \"app=(\"}]\n" + screen,
			`problem  resource "configmaps": labelSelector "app=(": unable to parse requirement: found '(', expected: identifier: write it as kubectl does, such as app=web`},
		{"a filter that is none", "", "resources: [{resource: configmaps, filter: \"object.data.n = 1\"}]\n" + screen,
			`problem  resource "configmaps": compile filter: correct what the dots lead to; it is CEL, as in object.spec.replicas > 1: ERROR: <input>:1:15: Syntax error`},
		{"a path that no object has", "", "resources: [{resource: configmaps, drop: [.dta]}]\n" + screen,
			`problem  resource "configmaps": drop path ".dta": the API server's schemas have no such field: correct it, or leave it out`},
		{"a label in a key of Kafka", "", with("sinks: [{kafka: {brokers: ['127.0.0.1:1'], key: '{namespaceLabel:app}'}}]\n"),
			"sinks[0].kafka.key (line 2): a label can change, and the object's records would be in two partitions, in no order; allowed: {cluster}, {group}, {kind}, {resource}, {namespace}, {name}"},
		{"a header that the exporter has", "", with("sinks: [{nats: {url: 'nats://127.0.0.1:1', headers: {kubecdc-id: x}}}]\n"),
			"sinks[0].nats.headers.kubecdc-id (line 2): the exporter or the server has headers of such names; do not begin with any of kubecdc-, ce_, ce-, nats-, kv-, content-type"},
		{"changes of what is not kept", "", "resources: [{resource: configmaps, changes: true}]\n" + screen,
			`resources[0].changes (line 1): what was before is not kept, so nobody knows what changed; add before: true, or leave it out`},
		{"a word for what updates say", "", with("sinks: [{name: out, file: {path: out}, updates: diff}]\n"),
			`sinks[0].updates (line 2): unknown value "diff"; allowed: whole, patch`},
		{"patches of what is not kept", "", with("sinks: [{name: out, file: {path: out}, updates: patch}]\n"),
			"sinks[0].updates (line 2): a patch is made of the object before, which is not kept of configmaps (resources[0]); add before: true there, or choose updates: whole"},
		{"patches for Debezium's readers", "", kept("sinks: [{name: out, file: {path: out}, format: debezium, updates: patch}]\n"),
			"sinks[0].updates (line 2): readers of the format debezium fold no patches; choose the format cloudevents or cloudevents-binary, or updates: whole"},
		{"patches without a mark", "", kept("sinks: [{nats: {url: 'nats://127.0.0.1:1'}, format: object, updates: patch}]\n"),
			"sinks[0].updates (line 2): nothing in the format object would tell a patch from an object; choose the format cloudevents or cloudevents-binary, or updates: whole"},
		{"patches in a bucket", "", kept("sinks: [{nats: {url: 'nats://127.0.0.1:1', kv: b}, updates: patch}]\n"),
			"sinks[0].updates (line 2): a bucket keeps the last value of each object, which would be a patch of what is gone; use a stream, or updates: whole"},
		{"patches in a compacted topic", "", kept("sinks: [{kafka: {brokers: ['127.0.0.1:1'], topicConfig: {cleanup.policy: compact}}, updates: patch}]\n"),
			"sinks[0].updates (line 2): a compacted topic keeps the last record of each object, which would be a patch of what is gone; use cleanup: delete, or updates: whole"},
		{"patches that labels lead elsewhere", "", kept("sinks: [{kafka: {brokers: ['127.0.0.1:1'], topic: 'k.{label:team}'}, updates: patch}]\n"),
			"sinks[0].updates (line 2): a label can change, and a patch would be in another place than the object that it changes; leave the label out of topics and subjects, or choose updates: whole"},
		{"a file that several exporters would write", "", with("sinks: [{name: bus, nats: {url: 'nats://127.0.0.1:1'}}, {name: out, file: {path: out}}]\n" +
			"state: {log: {sink: bus}}\nha: {lease: a/b}\n"),
			`sinks[1].file (line 2): sink "out" cannot be used with ha: a file keeps no second exporter out, so one that wakes up late would write into it, ` +
				"and another host does not have it; use a sink in kafka or nats, or leave out ha"},
		{"a word for who", "", "resources: [{resource: configmaps, actor: user}]\n" + screen,
			`resources[0].actor (line 1): want true or false, have "user"`},
		{"an ignored path that no object has", "", "resources: [{resource: configmaps, ignore: [.dta]}]\n" + screen,
			`problem  resource "configmaps": ignore path ".dta": the API server's schemas have no such field: correct it, or leave it out`},
		{"an ignored path that is none", "", "resources: [{resource: configmaps, ignore: [\".data[\"]}]\n" + screen,
			`problem  resource "configmaps": ignore path ".data[": a [ without its ]`},
		{"a list of ignored paths that is none", "", "resources: [{resource: configmaps, ignore: [beats]}]\n" + screen,
			`resources[0].ignore[0] (line 1): want a path such as .status.conditions[*].lastHeartbeatTime, or the name of a list, which is heartbeats, have "beats"`},
		{"users whom nobody receives", "", with("sinks: [{name: out, actors: true, file: {path: out}}]\n"),
			"sinks[0].actors (line 2): needs audit, which receives them; add that, or leave actors out"},
		{"a word for users", "", with("sinks: [{name: out, actors: some, file: {path: out}}]\n"),
			`sinks[0].actors (line 2): want true or false, have "some"`},
		{"users whom no sink takes", "", with(screen + audited(":9443", "clientCA: ca.crt")),
			"audit (line 3): no sink takes what it receives; set actors: true on one, or leave audit out"},
		{"users in an envelope", "", with("sinks: [{name: out, actors: true, format: debezium, file: {path: out}}]\n" + audited(":9443", "clientCA: ca.crt")),
			"sinks[0].actors (line 2): a record of format: debezium is an object, and has no place for a user; choose format: cloudevents, or leave actors out"},
		{"audit at no port", "", with(told + audited("9443", "clientCA: ca.crt")),
			`audit.listen (line 3): want an address such as :9443 or 127.0.0.1:9443, have "9443"`},
		{"audit from anybody", "", with(told + audited(":9443", "")),
			"audit.clientCA (line 3): missing; want a file in PEM with the certificates that may have signed a sender's"},
		{"audit with a password", "", with(told + audited(":9443", "clientCA: ca.crt, password: p")),
			"audit.password (line 3): unknown key; allowed: clientCA, listen, tls"},
		{"audit without a certificate", "", with(told + "audit: {listen: ':9443', clientCA: ca.crt}\n"),
			"audit.tls (line 3): want cert and key, files in PEM with the certificate that the API server is shown, and with its private key"},
		{"audit with a file that is not there", "", with(told + audited(":9443", "clientCA: ca.crt")),
			"problem  read audit.tls.cert tls.crt and audit.tls.key tls.key: open tls.crt: no such file or directory"},
		{"another context", "--context staging -f config.yaml", with(screen),
			`problem  load the kubeconfig: it has no context "staging": set --context to one of dev, limited`},
		{"missing rights", "--context limited -f config.yaml", "resources: [serviceaccounts]\n" + screen,
			`namespaces "kube-system" is forbidden: User "limited" cannot get resource "namespaces"`},
		{"the state of another cluster", "--state-dir state --cluster other -f config.yaml", with(screen),
			`problem  state state belongs to cluster "dev" (uid `},
		{"a port in use", "--listen " + address + " -f config.yaml", with(screen),
			": address already in use: choose another address with --listen, or with listen in the configuration"},
		{"a file in a directory that is not there", "", with("sinks: [{name: out, file: {path: nope/out}}]\n"),
			"problem  sink out: check file nope/out: no such file or directory: create the directory"},
		{"a directory for a file", "", with("sinks: [{name: out, file: {path: state}}]\n"),
			"problem  sink out: check file state: is a directory: name a file in the directory"},
		{"one file twice", "", with("sinks: [{name: a, file: {path: out}}, {name: b, file: {path: ./out}}]\n"),
			"problem  sinks a and b write to the same file DIR/out: give each its own with the key file.path, or leave one out"},
		{"sinks that share a stream", "", with("sinks: [{name: a, nats: {url: \"nats://127.0.0.1:1\"}}, {name: b, nats: {url: \"nats://127.0.0.1:1\"}}]\n"),
			"problem  sinks a and b write to the same stream K8S_dev: give each its own with the key nats.stream, or leave one out"},
		{"a broker that does not answer", "", with("sinks: [{name: bus, nats: {url: \"nats://127.0.0.1:1\"}}]\n"),
			"problem  sink bus: connect to nats://127.0.0.1:1: nobody answers there: check the URL, and that the server is up"},
		{"a wrong password", "", with("sinks: [{name: bus, " + secured + "}]\n"),
			": authorization violation: check user, password, token, nkey or credentials file of the sink"},
	}
}

// brokers are mistakes with a real Kafka.
func brokers(c *kafka.Cluster) []mistake {
	lake := func(at, more string) string {
		return with(fmt.Sprintf("sinks: [{name: lake, kafka: {brokers: [%q]%s}}]\n", at, more))
	}
	plain, tls := c.Brokers()[0], c.BrokersAt(kafka.TLS)[0]
	return []mistake{
		{"more replicas than brokers", "", lake(plain, ", replication: 3"),
			"there are fewer brokers than replicas asked for: set kafka.replication to at most the number of brokers, or leave it out"},
		{"another listener", "", lake(tls, ""),
			": the port speaks TLS: set kafka.tls, or use the port of a listener without TLS in kafka.brokers"},
		{"a topic that nobody makes", "", lake(plain, ", create: false"),
			"problem  sink lake: look up topic k8s.dev.configmaps: it does not exist: create it, or let the exporter do it with kafka.create"},
		{"a setting of topics that there is not", "", lake(plain, ", topicConfig: {retention.mss: \"1\"}"),
			"problem  sink lake: create topic k8s.dev.configmaps: Kafka's error 40 INVALID_CONFIG: Unknown topic config name: retention.mss: Kafka does not take a setting of the topic: correct kafka.topicConfig"},
	}
}

// TestTypicalMistakesAreAnswered: each with what is wrong, where, and what to change. None is accepted silently.
func TestTypicalMistakesAreAnswered(t *testing.T) {
	d := withState(t)
	used, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	bus := startBroker(t, func(o *natsserver.Options) { o.Username, o.Password = "me", password })
	all := slices.Concat(writing(), registryKeys(), world(d, used.Addr().String(), bus))
	c := kafka.Start(t, kafka.Options{Listeners: []kafka.Listener{kafka.TLS}})
	if all = append(all, registries(t, c.Brokers()[0])...); c.Real() {
		all = append(all, brokers(c)...)
	}
	for _, m := range all {
		t.Run(m.what, func(t *testing.T) { d.answers(t, m) })
	}
}

func (d *desk) answers(t *testing.T, m mistake) {
	t.Helper()
	flags := words(m.flags)
	if m.config != "" {
		d.write("config.yaml", m.config)
	}
	if m.config != "" && !strings.Contains(m.flags, "-f ") {
		flags = append(flags, "-f", "config.yaml")
	}
	r := d.exporter(checking(flags...)...)
	said := strings.ReplaceAll(r.Stdout+r.Stderr, d.dir, "DIR")
	accepted := r.Code == 0 && !strings.HasPrefix(m.says, "note ") && !strings.HasPrefix(m.says, "ok ")
	if accepted || !strings.Contains(said, m.says) {
		t.Errorf("exit code %d\n%s\nwant in it\n%s", r.Code, said, m.says)
	}
}
