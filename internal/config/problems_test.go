package config

import (
	"reflect"
	"strings"
	"testing"
)

// keysOf are the names of a section's keys, as problems list them.
func keysOf(of any) string {
	var names []string
	for _, k := range fieldsOf(reflect.TypeOf(of).Elem()) {
		names = append(names, k.name)
	}
	return join(names)
}

// Each file has one problem; the message is the whole line.
func TestOneProblem(t *testing.T) {
	for _, test := range []struct{ name, file, want string }{
		{"empty", "", "empty; want at least resources and sinks"},
		{"only a comment", "# none\n", "empty; want at least resources and sinks"},
		{"null", "---\n~\n", "empty; want at least resources and sinks"},
		{"not UTF-8", "cluster: a\nlisten: \xff\n", "line 2: not UTF-8; save the file as UTF-8"},
		{"UTF-16", "\xff\xfec\x00", "line 1: not UTF-8; save the file as UTF-8"},
		{"zero byte", "cluster: a\x00b\n", "not YAML: control characters are not allowed; look at the indentation, brackets and quotes of this line and of the one before"},
		{"tab", "state:\n\tdir: /d\n", "line 2: indented with a tab; YAML wants spaces"},
		{"syntax", "cluster: a\nlisten: [b\nlog: c\n", "line 2: not YAML: did not find expected ',' or ']'; look at the indentation, brackets and quotes of this line and of the one before"},
		{"two documents", "cluster: a\n---\ncluster: b\n", "line 3: a second document; a configuration is one document, without ---"},
		{"syntax of the first line", "cluster: 'a' b\n", "line 1: not YAML: did not find expected key; look at the indentation, brackets and quotes of this line and of the one before"},
		{"syntax that a token breaks", "cluster: a\nstate:\n  dir: a\n  b: c: d\n", "line 4: not YAML: mapping values are not allowed in this context; look at the indentation, brackets and quotes of this line and of the one before"},
		{"indentation", "state:\n  dir: a\n log: b\n", "line 3: not YAML: did not find expected key; look at the indentation, brackets and quotes of this line and of the one before"},
		{"syntax of the second document", "cluster: a\n---\n[\n", "line 4: not YAML: did not find expected node content; look at the indentation, brackets and quotes of this line and of the one before"},
		{"a tag", "cluster: !!float a\n", "cluster (line 1): want a string, have a; put it in quotes"},
		{"endless alias", "cluster: &a [*a]\n", "cluster (line 1): want a string, have a list"},
		{"endless merge", "state: &a {<<: *a}\n", "state (line 1): too many aliases; an anchor may stand for itself"},
		{"a word that is merged", "state: {<<: a}\n", "state (line 1): << wants a mapping, or a list of mappings"},
		{"a list", "- pods\n", "line 1: want a mapping with keys of " + keysOf(&Config{}) + ", have a list"},
		{"a word", "pods", `line 1: want a mapping with keys of ` + keysOf(&Config{}) + `, have "pods"`},

		{"unknown key", "cluser: a\n", "cluser (line 1): unknown key; did you mean cluster? allowed: " + keysOf(&Config{})},
		{"unknown key, nothing near", "pods: a\n", "pods (line 1): unknown key; allowed: " + keysOf(&Config{})},
		{"key of another kind of sink", "sinks:\n- name: a\n  pulsar: {brokers: [b]}\n", "sinks[0].pulsar (line 3): unknown key; allowed: " + keysOf(&Sink{})},
		{"case of a key", "sinks: [{File: {path: /f}}]", "sinks[0].File (line 1): unknown key; did you mean file? allowed: " + keysOf(&Sink{})},
		{"swapped letters", "state: {dri: /d}", "state.dri (line 1): unknown key; did you mean dir? allowed: dir, log"},
		{"odd key", "state: {'a.b c': /d}", `state."a.b c" (line 1): unknown key; allowed: dir, log`},
		{"number as a key", "log: {1: a}", "log.1 (line 1): unknown key; allowed: format, level"},
		{"mapping as a key", "log: {{a: b}: c}", `log."a mapping" (line 1): unknown key; allowed: format, level`},
		{"null as a key", "log: {~: c}", `log.null (line 1): unknown key; allowed: format, level`},
		{"key given twice", "cluster: a\nlisten: ':1'\ncluster: b\n", "cluster (line 3): key given twice, first on line 1; leave one out"},
		{"unknown key in a resource", "resources: [{resource: pods, namespace: a}]", "resources[0].namespace (line 1): unknown key; did you mean namespaces? allowed: " + keysOf(&Resource{})},

		{"number for a string", "cluster: 7\n", "cluster (line 1): want a string, have 7; put it in quotes"},
		{"boolean for a string", "cluster: no\n", "cluster (line 1): want a string, have no; put it in quotes"},
		{"list for a string", "cluster:\n- a\n", "cluster (line 1): want a string, have a list"},
		{"number for a secret", "sinks: [{nats: {url: 'nats://h', user: u, password: 7}}]", "sinks[0].nats.password (line 1): want a string; put it in quotes"},
		{"string for a list", "resources: pods\n", `resources (line 1): want a list, have "pods"`},
		{"mapping for a list", "sinks: {name: a}\n", "sinks (line 1): want a list, have a mapping"},
		{"string for a mapping", "sinks: [bus]\n", `sinks[0] (line 1): want a mapping with keys of ` + keysOf(&Sink{}) + `, have "bus"`},
		{"string for a destination", "sinks: [{nats: 'nats://h'}]\n", `sinks[0].nats (line 1): want a mapping with keys of ` + keysOf(&NATS{}) + `, have "nats://h"`},
		{"list for a resource", "resources: [[pods]]\n", "resources[0] (line 1): want a resource such as pods or {resource: pods, namespaces: [shop]}, have a list"},
		{"number for a resource", "resources:\n- pods\n- 5\n", "resources[1] (line 3): want a string, have 5; put it in quotes"},
		{"number for a resource's name", "resources: [{resource: 5}]\n", "resources[0].resource (line 1): want a string, have 5; put it in quotes"},
		{"nothing for a resource", "resources:\n- pods\n-\n", "resources[1] (line 1): want a value, have nothing"},
		{"nothing for a namespace", "resources:\n- {resource: pods, namespaces: [~]}\n", "resources[0].namespaces[0] (line 2): want a value, have nothing"},
		{"boolean for a size", sinkWith("queue: {bytes: true}"), "sinks[0].queue.bytes (line 4): want a size such as 64Mi, have true"},
		{"word for a size", sinkWith("queue: {bytes: 64MB}"), `sinks[0].queue.bytes (line 4): want a size such as 64Mi, have "64MB"`},
		{"list for a size", sinkWith("queue: {bytes: []}"), "sinks[0].queue.bytes (line 4): want a size such as 64Mi, have a list"},
		{"no bytes", sinkWith("queue: {bytes: 0}"), "sinks[0].queue.bytes (line 4): want a size of at least 1, have 0"},
		{"no records", sinkWith("queue: {records: 0}"), "sinks[0].queue.records (line 4): want a whole number, at least 1, have 0"},
		{"half a record", sinkWith("queue: {records: 1.5}"), "sinks[0].queue.records (line 4): want a whole number, at least 1, have 1.5"},
		{"mapping for a number", sinkWith("queue: {records: {a: 1}}"), "sinks[0].queue.records (line 4): want a whole number, at least 1, have a mapping"},
		{"replicas", natsWith("replicas: 6"), "sinks[0].nats.replicas (line 1): want a whole number from 1 to 5, have 6"},
		{"bare number for a duration", natsWith("maxAge: 10"), "sinks[0].nats.maxAge (line 1): want a length of time such as 10h or 1h30m, have 10"},
		{"negative duration", natsWith("maxAge: -10h"), `sinks[0].nats.maxAge (line 1): want a length of time such as 10h or 1h30m, have "-10h"`},
		{"list for a duration", natsWith("maxAge: [10h]"), "sinks[0].nats.maxAge (line 1): want a length of time such as 10h or 1h30m, have a list"},
		{"word for a boolean", natsWith("tls: {first: yes}"), "sinks[0].nats.tls.first (line 1): want true or false, have yes"},
		{"list for a boolean", natsWith("tls: {first: []}"), "sinks[0].nats.tls.first (line 1): want true or false, have a list"},

		{"unset variable", "cluster: a${NONE}b\n", "cluster (line 1): environment variable NONE is not set; set it, or write $${NONE} for the plain text"},
		{"unset variable for a size", sinkWith("queue: {bytes: '${NONE}'}"), "sinks[0].queue.bytes (line 4): environment variable NONE is not set; set it, or write $${NONE} for the plain text"},
		{"unset variable for what is needed", "sinks: [{nats: {url: '${NONE}'}}]\n", "sinks[0].nats.url (line 1): environment variable NONE is not set; set it, or write $${NONE} for the plain text"},
		{"open variable", "cluster: '${QUEUE'\n", "cluster (line 1): ${ without a closing }; write $${ for a plain ${"},
		{"shell in a variable", "cluster: '${QUEUE:-1}'\n", "cluster (line 1): ${...} holds more than the name of a variable; write $${ for a plain ${"},
		{"no variable", "cluster: '${}'\n", "cluster (line 1): ${...} holds more than the name of a variable; write $${ for a plain ${"},
		{"value of a variable is not shown", sinkWith("queue: {bytes: '${NATS_PASSWORD}'}"), `sinks[0].queue.bytes (line 4): want a size such as 64Mi, have "${NATS_PASSWORD}"`},

		{"white space around the cluster", "cluster: \"a\\n\"\n", `cluster (line 1): "a\n" begins or ends with white space; leave it out`},
		{"listen", "listen: '8080'\n", `listen (line 1): want an address such as :8080 or 127.0.0.1:8080, have "8080"`},
		{"listen on a name", "listen: ':http'\n", `listen (line 1): want an address such as :8080 or 127.0.0.1:8080, have ":http"`},
		{"log of the state without a sink", "state: {log: {}}\n", "state.log.sink (line 1): missing; want the name of a sink in kafka or nats"},
		{"log of the state at no sink", "state: {log: {sink: b}}\nsinks: [{name: a, nats: {url: 'nats://h'}}]\n", `state.log.sink (line 1): there is no sink "b"; name one of the sinks in kafka or nats`},
		{"log of the state in a file", "state: {log: {sink: a}}\nsinks: [{name: a, file: {path: /f}}]\n", `state.log.sink (line 1): sink "a" writes to a file, which is lost with the directory, and which keeps no second exporter out; name a sink in kafka or nats`},
		{"name of a log of the state", "state: {log: {sink: a, name: a.b}}\nsinks: [{name: a, nats: {url: 'nats://h'}}]\n", `state.log.name (line 1): "a.b" cannot be a name; want letters, digits, {cluster} and any of -_`},
		{"log level", "log: {level: loud}\n", `log.level (line 1): unknown value "loud"; allowed: debug, info, warn, error`},
		{"log format", "log: {format: xml}\n", `log.format (line 1): unknown value "xml"; allowed: text, json`},
		{"resource in upper case", "resources: [Pods]\n", `resources[0] (line 1): "Pods" cannot be a resource; write it as kubectl does: pods, deployments.apps, *.cert-manager.io or *`},
		{"resource with a slash", "resources: [apps/v1]\n", `resources[0] (line 1): "apps/v1" cannot be a resource; write it as kubectl does: pods, deployments.apps, *.cert-manager.io or *`},
		{"resource without a name", "resources: [{namespaces: [a]}]\n", `resources[0] (line 1): "" cannot be a resource; write it as kubectl does: pods, deployments.apps, *.cert-manager.io or *`},
		{"resource with an empty group", "resources: ['deployments.']\n", `resources[0] (line 1): "deployments." cannot be a resource; write it as kubectl does: pods, deployments.apps, *.cert-manager.io or *`},
		{"resource twice", "resources:\n- pods\n- {resource: pods, namespaces: [a]}\n", "resources[1] (line 3): pods is named already in resources[0]; list all its namespaces there, or put this one first"},
		{"operation", "resources: [{resource: pods, ops: [added, replaced]}]\n", `resources[0].ops[1] (line 1): unknown value "replaced"; allowed: added, updated, deleted`},
		{"keep", "resources: [{resource: pods, keep: [.spec]}]\n", `resources[0].keep[0] (line 1): unknown value ".spec"; allowed: managedFields, lastApplied`},
		{"word for a redaction", "resources: [{resource: pods, redact: all}]\n", "resources[0].redact (line 1): want a list of paths such as [.spec.token], or none"},
		{"mapping for a redaction", "resources: [{resource: pods, redact: {a: b}}]\n", "resources[0].redact (line 1): want a string, have a mapping"},
		{"number in a redaction", "resources: [{resource: pods, redact: [1]}]\n", "resources[0].redact[0] (line 1): want a string, have 1; put it in quotes"},
		{"namespace", "resources: [{resource: pods, namespaces: [a, B]}]\n", `resources[0].namespaces[1] (line 1): "B" cannot be a namespace; want lower case letters, digits and -`},

		{"policy of large records", sinkWith("oversize: drop"), `sinks[0].oversize (line 4): unknown value "drop"; allowed: deadletter, trim, reject`},
		{"an operation of a sink", sinkWith("ops: [create]"), `sinks[0].ops[0] (line 4): unknown value "create"; allowed: added, updated, deleted`},
		{"bare values for a sink", sinkWith("redact: none"), `sinks[0].redact (line 4): want a list, have "none"`},
		{"a complete log of merged states", sinkWith("resolved: {every: 1s}\n  queue: {full: coalesce}"), "sinks[0].resolved (line 4): a queue with full: coalesce leaves states out; choose block or spool, or leave resolved out"},
		{"a digest without its records", sinkWith("resolved: {digest: true}"), "sinks[0].resolved.digest (line 4): needs every beside it; set that, or leave digest out"},
		{"a digest of what is left out", sinkWith("resolved: {every: 1s, digest: true}\n  filter: 'true'"), "sinks[0].resolved.digest (line 4): a sink with ops or filter is not told of everything; leave those out, or digest"},
		{"a digest of what a resource leaves out", "resources: [{resource: leases, ignore: [heartbeats]}]\n" + sinkWith("resolved: {every: 1s, digest: true}"), "sinks[0].resolved.digest (line 5): leases has ops, filter or ignore, so the sink is not told of everything; leave those out, or digest, or the resource out of the sink"},
		{"a digest of a bucket", "sinks:\n- nats: {url: nats://localhost, kv: K8S}\n  resolved: {every: 1s, digest: true}", "sinks[0].resolved.digest (line 3): a bucket forgets what each object was; use a stream, or leave digest out"},
		{"a digest of a table", "sinks:\n- kafka: {brokers: [localhost:9092], cleanup: compact}\n  resolved: {every: 1s, digest: true}", "sinks[0].resolved.digest (line 3): a compacted topic forgets what each object was; use cleanup: delete, or leave digest out"},
		{"a digest elsewhere", "sinks:\n- kafka: {brokers: [localhost:9092], frames: topic}\n  resolved: {every: 1s, digest: true}", "sinks[0].resolved.digest (line 3): it is of the records before it in its topic, and frames: topic puts it elsewhere; use frames: inline, or leave digest out"},
		{"a digest of many topics", "resources: [{resource: pods}]\nsinks:\n- kafka: {brokers: [localhost:9092], topics: {pods: 'pods.{namespace}'}}\n  resolved: {every: 1s, digest: true}", "sinks[0].resolved.digest (line 4): pods has a topic for more than the resource in topics.pods; leave {namespace}, {name}, {version} and labels out of it, or digest"},
		{"a cluster without a name", "clusters: [{context: a}]\n", "clusters[0].name (line 1): missing; want a name such as prod-eu1, which is that of the cluster in records and topics"},
		{"a cluster with an odd name", "clusters: [{name: a/b}]\n", "clusters[0].name (line 1): \"a/b\" cannot be the name of one of several clusters; want lower case letters, digits and -"},
		{"two clusters of one name", "clusters:\n- {name: a}\n- {name: a, context: b}\n", "clusters[1].name (line 3): another cluster is called \"a\", too; choose another name"},
		{"one cluster under two names", "clusters:\n- {name: a}\n- {name: b}\n", "clusters[1] (line 3): it is reached as clusters[0] is, and so is the same cluster; give it another kubeconfig, secret or context"},
		{"a cluster of an odd Secret", "clusters: [{name: a, secret: b}]\n", "clusters[0].secret (line 1): \"b\" is no Secret; want namespace/name, such as kubecdc/prod-eu1"},
		{"a cluster of a Secret and a file", "clusters: [{name: a, secret: b/c, kubeconfig: d}]\n", "clusters[0].secret (line 1): kubeconfig says where the kubeconfig is, too; leave one of them out"},
		{"a cluster beside several", "cluster: a\nclusters: [{name: a}, {name: b, context: b}]\n", "cluster (line 1): clusters have names of their own; leave it out"},
		{"audit of several clusters", "clusters: [{name: a}, {name: b, context: b}]\naudit: {listen: ':9443', tls: {cert: c, key: k}, clientCA: c}\n", "audit (line 2): its events do not say of which of several clusters they are; leave it out, or run an exporter for each cluster"},
		{"one file of several clusters", "clusters: [{name: a}, {name: b, context: b}]\nsinks: [{file: {path: /f}}]\n", "sinks[0].file.path (line 2): \"/f\" is one place for all clusters; have {cluster} in it"},
		{"standard output of several clusters", "clusters: [{name: a}, {name: b, context: b}]\nsinks: [{file: {path: '-'}}]\n", "sinks[0].file.path (line 2): standard output is one for all clusters; choose a file with {cluster} in its name"},
		{"one stream of several clusters", "clusters: [{name: a}, {name: b, context: b}]\nsinks: [{nats: {url: 'nats://h', stream: K8S}}]\n", "sinks[0].nats.stream (line 2): \"K8S\" is one place for all clusters; have {cluster} in it"},
		{"one bucket of several clusters", "clusters: [{name: a}, {name: b, context: b}]\nsinks: [{nats: {url: 'nats://h', kv: K8S}}]\n", "sinks[0].nats.kv (line 2): \"K8S\" is one place for all clusters; have {cluster} in it"},
		{"one topic of several clusters", "clusters: [{name: a}, {name: b, context: b}]\nresources: [pods]\nsinks: [{kafka: {brokers: ['h:1'], topics: {pods: p}}}]\n", "sinks[0].kafka.topics.pods (line 3): \"p\" is one place for all clusters; have {cluster} in it"},
		{"one id of several clusters", "clusters: [{name: a}, {name: b, context: b}]\nsinks: [{kafka: {brokers: ['h:1'], transactionalId: x}}]\n", "sinks[0].kafka.transactionalId (line 2): \"x\" is one place for all clusters; have {cluster} in it"},
		{"signals of several clusters", "clusters: [{name: a}, {name: b, context: b}]\nsinks: [{kafka: {brokers: ['h:1'], signals: {}}}]\n", "sinks[0].kafka.signals.topic (line 2): \"kubecdc-signals\" is one place for all clusters; have {cluster} in it"},
		{"letters of several clusters", "clusters: [{name: a}, {name: b, context: b}]\nsinks: [{file: {path: '/{cluster}'}, deadLetter: {dir: /d}}]\n", "sinks[0].deadLetter.dir (line 2): \"/d\" is one place for all clusters; have {cluster} in it"},
		{"a lease of several clusters", "clusters: [{name: a}, {name: b, context: b}]\nsinks: [{name: k, kafka: {brokers: ['h:1']}}]\nstate: {log: {sink: k}}\nha: {lease: a/b}\n", "ha.lease (line 4): \"a/b\" is one place for all clusters; have {cluster} in it"},
		{"operations that are merged", sinkWith("ops: [added]\n  queue: {full: coalesce}"), "sinks[0].ops (line 4): a queue with full: coalesce merges operations; choose block or spool, or leave ops out"},
		{"cuts that nobody makes", sinkWith("trim: [.data]"), "sinks[0].trim (line 4): needs oversize: trim; set that, or leave it out"},
		{"word for cuts", sinkWith("trim: .data"), `sinks[0].trim (line 4): want a list, have ".data"`},
		{"word for dead letters", sinkWith("deadLetter: /d"), `sinks[0].deadLetter (line 4): want a mapping with keys of bytes, dir, have "/d"`},
		{"unknown key of dead letters", sinkWith("deadLetter: {path: /d}"), "sinks[0].deadLetter.path (line 4): unknown key; allowed: bytes, dir"},
		{"directory of dead letters", sinkWith("deadLetter: {dir: \"a\\0b\"}"), "sinks[0].deadLetter.dir (line 4): a path cannot hold a zero byte"},
		{"name of dots", "sinks: [{name: .., file: {path: /f}}]", `sinks[0].name (line 1): ".." cannot be a name, because the sink's directory has the same name; want a letter or a digit in it`},

		{"users without a place to receive them", sinkWith("actors: true"), "sinks[0].actors (line 4): needs audit, which receives them; add that, or leave actors out"},
		{"word for users", sinkWith("actors: all"), `sinks[0].actors (line 4): want true or false, have "all"`},
		{"users whom nobody wants", audited + sinkWith("resync: 1h"), "audit (line 1): no sink takes what it receives; set actors: true on one, or leave audit out"},
		{"users in a format of objects", audited + sinkWith("actors: true\n  format: debezium"), "sinks[0].actors (line 5): a record of format: debezium is an object, and has no place for a user; choose format: cloudevents, or leave actors out"},
		{"users in a bucket", audited + "sinks: [{actors: true, nats: {url: 'nats://h', kv: b}}]", "sinks[0].actors (line 2): a bucket holds the present state of each object, and no users; use a stream, or leave actors out"},
		{"audit nowhere", "audit: {tls: {cert: /c, key: /k}, clientCA: /a}\n" + sinkWith("actors: true"), "audit.listen (line 1): missing; want an address such as :9443"},
		{"audit at a port alone", strings.Replace(audited, "':9443'", "'9443'", 1) + sinkWith("actors: true"), `audit.listen (line 1): want an address such as :9443 or 127.0.0.1:9443, have "9443"`},
		{"audit where the status is", strings.Replace(audited, "':9443'", "'127.0.0.1:8080'", 1) + sinkWith("actors: true"), `audit.listen (line 1): "127.0.0.1:8080" is the address of listen already; give it one of its own`},
		{"audit without a certificate", strings.Replace(audited, "cert: /c, ", "", 1) + sinkWith("actors: true"), auditTLS},
		{"audit without a key", strings.Replace(audited, ", key: /k", "", 1) + sinkWith("actors: true"), auditTLS},
		{"audit from anybody", strings.Replace(audited, ", clientCA: /a", "", 1) + sinkWith("actors: true"), "audit.clientCA (line 1): missing; want a file in PEM with the certificates that may have signed a sender's"},
		{"audit with a token", strings.Replace(audited, "clientCA: /a", "clientCA: /a, token: t", 1) + sinkWith("actors: true"), "audit.token (line 1): unknown key; allowed: clientCA, listen, tls"},
		{"word for audit", "audit: true\n" + sinkWith("resync: 1h"), "audit (line 1): want a mapping with keys of clientCA, listen, tls, have true"},

		{"no destination", "sinks: [{name: a}]\n", "sinks[0] (line 1): no destination; give it one of file, kafka, nats"},
		{"two destinations", "sinks: [{name: a, file: {path: /f}, nats: {url: 'nats://h'}}]\n", "sinks[0] (line 1): 2 destinations, file and nats; give each a sink of its own"},
		{"sink's name", "sinks: [{name: a b, file: {path: /f}}]\n", `sinks[0].name (line 1): "a b" cannot be a name; want letters, digits and any of -_.`},
		{"name twice", "sinks:\n- {name: a, file: {path: /f}}\n- {name: a, file: {path: /g}}\n", `sinks[1].name (line 3): "a" is the name of sinks[0] already; give each sink its own`},
		{"directory for a file", "sinks:\n- file: {path: /var/log/}\n", `sinks[0].file.path (line 2): "/var/log/" is a directory; name a file in it`},
		{"kind's name taken", "sinks:\n- {name: file, nats: {url: 'nats://h'}}\n- {file: {path: /g}}\n", `sinks[1].name (line 3): "file" is the name of sinks[0] already; give each sink its own`},
		{"format", sinkWith("format: avro"), `sinks[0].format (line 4): unknown value "avro"; allowed: ` + strings.Join(Formats(), ", ")},
		{"format without headers", sinkWith("format: object"), "sinks[0].format (line 4): object needs headers, which a file does not have; allowed here: cloudevents, debezium"},
		{"policy", sinkWith("queue: {full: drop}"), `sinks[0].queue.full (line 4): unknown value "drop"; allowed: block, spool, coalesce`},
		{"resync too often", sinkWith("resync: 30s"), `sinks[0].resync (line 4): want a length of time of at least 1m, have "30s"`},
		{"resync without a unit", sinkWith("resync: 10"), "sinks[0].resync (line 4): want a length of time such as 10h or 1h30m, have 10"},
		{"resync backwards", sinkWith("resync: -1h"), `sinks[0].resync (line 4): want a length of time such as 10h or 1h30m, have "-1h"`},
		{"resource that is not watched", "resources: [pods, jobs.batch]\nsinks:\n- {file: {path: /f}, resources: [pods, po]}\n", `sinks[0].resources[1] (line 3): "po" is not watched; write it as in resources: jobs.batch, pods`},

		{"failure of a filter", "resources: [{resource: pods, filter: 'true', filterFailure: drop}]", `resources[0].filterFailure (line 1): unknown value "drop"; allowed: pass, deadletter`},
		{"a label in a key", kafkaWith("key: '{label:team}'"), "sinks[0].kafka.key (line 1): a label can change, and the object's records would be in two partitions, in no order; allowed: {cluster}, {group}, {kind}, {resource}, {namespace}, {name}"},
		{"a version in a key", kafkaWith("key: '{version}/{name}'"), "sinks[0].kafka.key (line 1): the version can change, and the object's records would be in two partitions, in no order; allowed: {cluster}, {group}, {kind}, {resource}, {namespace}, {name}"},
		{"an unknown placeholder in a key", kafkaWith("key: '{uid}'"), "sinks[0].kafka.key (line 1): unknown placeholder {uid}; allowed: {cluster}, {group}, {resource}, {namespace}, {name}, {version}, {kind}, {label:KEY}, {namespaceLabel:KEY}"},
		{"one key of several objects in a compacted topic", kafkaWith("cleanup: compact, key: '{namespace}'"), "sinks[0].kafka.key (line 1): objects with one key would delete each other in a compacted topic; have {namespace}/{name} in it, or use cleanup: delete"},
		{"a key in a format with its own", strings.Replace(kafkaWith("key: '{name}'"), "[{", "[{format: debezium, ", 1), "sinks[0].kafka.key (line 1): the format debezium has keys of its own; leave it out, or choose another format"},
		{"a key that does not say what a delete deletes", strings.Replace(kafkaWith("key: '{namespace}'"), "[{", "[{format: object, ", 1), "sinks[0].kafka.key (line 1): in the format object the key alone says what a delete deletes; have {namespace}/{name} in it, or choose another format"},
		{"a header of ours", kafkaWith("headers: {CE_type: x}"), "sinks[0].kafka.headers.CE_type (line 1): the exporter or the server has headers of such names; do not begin with any of kubecdc-, ce_, ce-, nats-, kv-, content-type"},
		{"a header of the server", natsWith("headers: {status: x}"), "sinks[0].nats.headers.status (line 1): clients of NATS take such a header for the server's own; choose another name"},
		{"a header of buckets", natsWith("headers: {KV-Operation: DEL}"), "sinks[0].nats.headers.KV-Operation (line 1): the exporter or the server has headers of such names; do not begin with any of kubecdc-, ce_, ce-, nats-, kv-, content-type"},
		{"a header that is none", natsWith("headers: {'a b': x}"), `sinks[0].nats.headers."a b" (line 1): "a b" cannot be a header; want letters, digits and any of -_.`},
		{"a header over two lines", natsWith("headers: {a: \"x\\ny\"}"), "sinks[0].nats.headers.a (line 1): control characters cannot be part of a header; leave them out"},
		{"an unknown placeholder in a header", natsWith("headers: {a: '{uid}'}"), "sinks[0].nats.headers.a (line 1): unknown placeholder {uid}; allowed: {cluster}, {group}, {resource}, {namespace}, {name}, {version}, {kind}, {label:KEY}, {namespaceLabel:KEY}"},
		{"changes of what is not kept", "resources: [{resource: nodes, changes: true}]", `resources[0].changes (line 1): what was before is not kept, so nobody knows what changed; add before: true, or leave it out`},
		{"what an object that is no Event is about", "resources: [{resource: pods, before: true, involved: [labels]}]", "resources[0].involved (line 1): an object of pods is about no other one; leave it out, or put it at events"},
		{"events of knative", "resources: [{resource: events.knative.dev, before: true, involved: [labels]}]", "resources[0].involved (line 1): an object of events.knative.dev is about no other one; leave it out, or put it at events"},
		{"events about what is not kept", "resources:\n- pods\n- {resource: events, before: true, involved: [labels]}", "resources[1].involved (line 3): no object is kept that an Event could be about; add before: true to its resource, such as pods, or leave it out"},
		{"another field of what events are about", "resources: [{resource: pods, before: true}, {resource: events, involved: [annotations]}]", `resources[1].involved[0] (line 1): unknown value "annotations"; allowed: labels, ownerReferences`},
		{"a word for what events are about", "resources: [{resource: events, involved: labels}]", `resources[0].involved (line 1): want a list, have "labels"`},
		{"events about what the sink does not take", involvedWith("resources: [events.events.k8s.io]"), "sinks[0].resources (line 5): its events would tell it of pods, which it does not take; add pods, or leave involved out of the events"},
		{"any events about what the sink does not take", involvedWith("resources: ['*']"), "sinks[0].resources (line 5): its events would tell it of pods, which it does not take; add pods, or leave involved out of the events"},
		{"events about what the sink's filter leaves out", involvedWith("filter: 'true'"), "sinks[0].filter (line 5): its events would tell it of objects that the filter leaves out; put the filter at the resources, or leave involved out of the events"},
		{"events about what the sink is not told of", involvedWith("ops: [added, deleted]"), "sinks[0].ops (line 5): its events would tell it of objects that it is not told of; add added and updated, or leave involved out of the events"},
		{"no boolean", "resources: [{resource: nodes, actor: user}]", `resources[0].actor (line 1): want true or false, have "user"`},
		{"something ignored that is no path", "resources: [{resource: nodes, ignore: [heartbeats, heartbeat]}]", `resources[0].ignore[1] (line 1): want a path such as .status.conditions[*].lastHeartbeatTime, or the name of a list, which is heartbeats, have "heartbeat"`},
		{"no namespace", "resources: [{resource: pods, namespaces: []}]", "resources[0].namespaces (line 1): the list is empty; name some, or leave it out"},
		{"no resource for a sink", sinkWith("resources: []"), "sinks[0].resources (line 4): the list is empty; name some, or leave it out for all"},
		{"failure of no filter", "resources: [{resource: pods, filterFailure: deadletter}]", "resources[0].filterFailure (line 1): there is no filter that could fail; add filter, or leave it out"},
		{"word for before", "resources: [{resource: pods, before: always}]", `resources[0].before (line 1): want true or false, have "always"`},

		{"no path", "sinks: [{file: }]\n", "sinks[0].file.path (line 1): missing; want a file such as /var/log/changes.ndjson, or \"-\" for standard output"},
		{"zero byte in a path", `sinks: [{file: {path: "a\0"}}]`, "sinks[0].file.path (line 1): a path cannot hold a zero byte"},
		{"rotated standard output", "sinks: [{file: {path: '-', rotate: 1Mi}}]\n", "sinks[0].file.rotate (line 1): standard output cannot be rotated; leave it out"},
		{"keep without rotate", "sinks: [{file: {path: /f, keep: 3}}]\n", "sinks[0].file.keep (line 1): counts rotated files; give rotate a size, or leave it out"},

		{"no URL", "sinks: [{nats: {}}]\n", "sinks[0].nats.url (line 1): missing; want servers such as nats://host:4222"},
		{"URL without a scheme", "sinks: [{nats: {url: 'h:4222'}}]\n", `sinks[0].nats.url (line 1): want a URL that begins with one of nats://, tls://, ws://, wss://; have "h:4222"`},
		{"URL of another scheme", "sinks: [{nats: {url: 'nats://h,http://i'}}]\n", `sinks[0].nats.url (line 1): want each server to begin with one of nats://, tls://, ws://, wss://; have "nats://h,http://i"`},
		{"URL without a host", "sinks: [{nats: {url: 'nats://:4222'}}]\n", `sinks[0].nats.url (line 1): want servers such as nats://host:4222, in user and password special characters as %XX; have "nats://:4222"`},
		{"URL with a bad port", "sinks: [{nats: {url: 'nats://u:p@h:x'}}]\n", `sinks[0].nats.url (line 1): want servers such as nats://host:4222, in user and password special characters as %XX; have "nats://***@h:x"`},
		{"URL with a stream", "sinks: [{nats: {url: 'nats://h?stream=a'}}]\n", `sinks[0].nats.url (line 1): want nothing after a server's port; stream and name have keys of their own; have "nats://h?stream=a"`},
		{"URL with two logins", "sinks: [{nats: {url: 'nats://a:b@h,nats://c:d@i'}}]\n", "sinks[0].nats.url (line 1): servers have different logins; one sink logs in one way"},
		{"login in URL and keys", "sinks: [{nats: {url: 'nats://a:b@h', token: c}}]\n", "sinks[0].nats.url (line 1): a login here and in token; leave one out"},
		{"stream", natsWith("stream: a.b"), `sinks[0].nats.stream (line 1): "a.b" cannot be a stream; leave out white space and any of .*>/\`},
		{"placeholder", natsWith("subject: 'k8s.{ns}'"), "sinks[0].nats.subject (line 1): unknown placeholder {ns}; allowed: {cluster}, {group}, {resource}, {namespace}, {name}, {version}, {kind}, {label:KEY}, {namespaceLabel:KEY}"},
		{"open brace", natsWith("subject: 'k8s.{name'"), "sinks[0].nats.subject (line 1): a { without its }"},
		{"closing brace", natsWith("subject: 'k8s.name}'"), "sinks[0].nats.subject (line 1): a } without its {"},
		{"empty token", natsWith("subject: 'k8s..{name}'"), "sinks[0].nats.subject (line 1): a token is empty; leave no dot at either end, and not two in a row"},
		{"wildcard", natsWith("subject: 'k8s.>'"), "sinks[0].nats.subject (line 1): white space, * and > cannot be part of a subject that is published to"},
		{"certificate without a key", natsWith("tls: {cert: /c}"), "sinks[0].nats.tls (line 1): cert and key go together; give both or neither"},
		{"two logins", natsWith("user: u, nkey: /n"), "sinks[0].nats (line 1): 2 ways to log in, nkey, user; leave all but one out"},
		{"password alone", natsWith("password: p"), "sinks[0].nats.password (line 1): a password without a user; add user"},
		{"storage", natsWith("storage: tape"), `sinks[0].nats.storage (line 1): unknown value "tape"; allowed: file, memory`},
		{"discard", natsWith("discard: all"), `sinks[0].nats.discard (line 1): unknown value "all"; allowed: old, new`},
		{"discard without a limit", natsWith("discard: new"), "sinks[0].nats.discard (line 1): a stream without a limit is never full; give maxBytes, or leave it out"},
		{"shared bucket", natsWith("shared: true, kv: b"), "sinks[0].nats.shared (line 1): goes with a stream only"},
		{"a flag for a service", natsWith("service: true"), "sinks[0].nats.service (line 1): want a mapping with keys of " + keysOf(&NATSService{}) + ", have true"},
		{"unknown key of a service", natsWith("service: {subjects: a}"), "sinks[0].nats.service.subjects (line 1): unknown key; did you mean subject? allowed: " + keysOf(&NATSService{})},
		{"placeholder of a service", natsWith("service: {subject: 'ask.{name}'}"), `sinks[0].nats.service.subject (line 1): "ask.{name}": the only placeholder here is {cluster}`},
		{"wildcard of a service", natsWith("service: {subject: 'ask.*'}"), "sinks[0].nats.service.subject (line 1): white space, * and > cannot be part of a subject that is published to"},
		{"service below the server's own", natsWith("service: {subject: '$SYS.{cluster}'}"), `sinks[0].nats.service.subject (line 1): "$SYS.{cluster}" begins with $, which is the server's own; choose another subject`},
		{"answers below the server's own", natsWith("service: {inboxes: [_INBOX, '$JS.API']}"), `sinks[0].nats.service.inboxes[1] (line 1): "$JS.API" begins with $, which is the server's own; choose another subject`},
		{"answers anywhere", natsWith("service: {inboxes: ['>']}"), "sinks[0].nats.service.inboxes[0] (line 1): white space, * and > cannot be part of a subject that is published to"},
		{"answers below a dot", natsWith("service: {inboxes: [_INBOX.]}"), "sinks[0].nats.service.inboxes[0] (line 1): a token is empty; leave no dot at either end, and not two in a row"},
		{"two logins of a service", natsWith("service: {user: u, nkey: /n}"), "sinks[0].nats.service (line 1): 2 ways to log in, nkey, user; leave all but one out"},
		{"history without a bucket", natsWith("history: 3"), "sinks[0].nats.history (line 1): needs a bucket; add kv, or leave it out"},
		{"bucket", natsWith("kv: a.b"), `sinks[0].nats.kv (line 1): "a.b" cannot be a bucket; want letters, digits and any of -_`},
		{"bucket with a stream", natsWith("kv: a, stream: S"), "sinks[0].nats.stream (line 1): a bucket has a stream of its own; leave out one of kv and stream"},
		{"bucket with a subject", natsWith("kv: a, subject: s"), "sinks[0].nats.subject (line 1): a bucket has subjects of its own; leave out one of kv and subject"},
		{"bucket with an age", natsWith("kv: a, maxAge: 1h"), "sinks[0].nats.maxAge (line 1): a bucket keeps the present state, whatever its age; leave it out"},
		{"seed for its file", natsWith("nkey: SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"), "sinks[0].nats.nkey (line 1): want the path of a file that holds the seed, have a seed"},
		{"no brokers", "sinks: [{kafka: {}}]\n", "sinks[0].kafka.brokers (line 1): missing; want brokers such as [kafka-0:9092, kafka-1:9092]"},
		{"broker without a port", "sinks: [{kafka: {brokers: ['h:1', h]}}]\n", `sinks[0].kafka.brokers[1] (line 1): want host:port, have "h"`},
		{"broker with a login", "sinks: [{kafka: {brokers: ['u:p@h:1']}}]\n", `sinks[0].kafka.brokers[0] (line 1): want host:port, have "***@h:1"`},
		{"two brokers as one", "sinks: [{kafka: {brokers: ['a,b:1']}}]\n", `sinks[0].kafka.brokers[0] (line 1): want host:port, have "a,b:1"`},
		{"placeholder in a topic", kafkaWith("topic: 'k8s.{ns}'"), "sinks[0].kafka.topic (line 1): unknown placeholder {ns}; allowed: {cluster}, {group}, {resource}, {namespace}, {name}, {version}, {kind}, {label:KEY}, {namespaceLabel:KEY}"},
		{"topic", kafkaWith("topic: 'k8s/{name}'"), "sinks[0].kafka.topic (line 1): a topic has letters, digits and any of -_. only"},
		{"label without a key", kafkaWith("topic: 'k8s.{label:}'"), "sinks[0].kafka.topic (line 1): unknown placeholder {label:}; allowed: {cluster}, {group}, {resource}, {namespace}, {name}, {version}, {kind}, {label:KEY}, {namespaceLabel:KEY}"},
		{"label in a compacted topic", kafkaWith("topic: 'k8s.{label:app.kubernetes.io/name}', cleanup: compact"), "sinks[0].kafka.topic (line 1): a label can change, and a compacted topic would keep the object as it was before; leave out the label, or use cleanup: delete"},
		{"label in one that Kafka compacts", kafkaWith("topics: {pods: 'k8s.{label:app}'}, topicConfig: {cleanup.policy: 'delete,compact'}"), "sinks[0].kafka.topics.pods (line 1): a label can change, and a compacted topic would keep the object as it was before; leave out the label, or use cleanup: delete"},
		{"topic of a resource", kafkaWith("topics: {pods: 'k8s/{name}'}"), "sinks[0].kafka.topics.pods (line 1): a topic has letters, digits and any of -_. only"},
		{"topic of a resource that is not watched", "resources: [pods]\n" + kafkaWith("topics: {po: all}"), `sinks[0].kafka.topics.po (line 2): "po" is not watched; write it as in resources`},
		{"subject of a resource", natsWith("subjects: {'deployments.apps': 'k8s.>'}"), `sinks[0].nats.subjects."deployments.apps" (line 1): white space, * and > cannot be part of a subject that is published to`},
		{"subject of a resource that is not watched", "resources: [pods]\n" + natsWith("subjects: {po: all}"), `sinks[0].nats.subjects.po (line 2): "po" is not watched; write it as in resources`},
		{"bucket with subjects", natsWith("kv: a, subjects: {pods: s}"), "sinks[0].nats.subjects (line 1): a bucket has subjects of its own; leave out one of kv and subjects"},
		{"topic of dots", kafkaWith("topic: '..'"), "sinks[0].kafka.topic (line 1): dots alone are no topic"},
		{"delivery", kafkaWith("delivery: once"), `sinks[0].kafka.delivery (line 1): unknown value "once"; allowed: idempotent, transactional`},
		{"compression", kafkaWith("compression: brotli"), `sinks[0].kafka.compression (line 1): unknown value "brotli"; allowed: zstd, snappy, lz4, gzip, none`},
		{"cleanup", kafkaWith("cleanup: never"), `sinks[0].kafka.cleanup (line 1): unknown value "never"; allowed: delete, compact, compact,delete`},
		{"no partitions", kafkaWith("partitions: 0"), "sinks[0].kafka.partitions (line 1): want a whole number, at least 1, have 0"},
		{"replicas in sync", kafkaWith("replication: 2, minInsyncReplicas: 3"), "sinks[0].kafka.minInsyncReplicas (line 1): 3 of 2 replicas can never be in sync; lower it, or raise replication"},
		{"word for a choice", kafkaWith("create: maybe"), `sinks[0].kafka.create (line 1): want true or false, have "maybe"`},
		{"certificate without a key for Kafka", kafkaWith("tls: {cert: /c}"), "sinks[0].kafka.tls (line 1): cert and key go together; give both or neither"},
		{"NATS's TLS for Kafka", kafkaWith("tls: {first: true}"), "sinks[0].kafka.tls.first (line 1): unknown key; allowed: ca, cert, key, serverName"},
		{"mechanism", kafkaWith("sasl: {mechanism: GSSAPI}"), `sinks[0].kafka.sasl.mechanism (line 1): unknown value "GSSAPI"; allowed: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, AWS_MSK_IAM`},
		{"no password", kafkaWith("sasl: {mechanism: PLAIN, user: u}"), "sinks[0].kafka.sasl.password (line 1): missing; mechanism PLAIN needs it"},
		{"two passwords", kafkaWith("sasl: {mechanism: PLAIN, user: u, password: p, passwordFile: /p}"), "sinks[0].kafka.sasl.passwordFile (line 1): a password here and in password; leave one out"},
		{"token's URL for a password", kafkaWith("sasl: {mechanism: PLAIN, user: u, password: p, region: r}"), "sinks[0].kafka.sasl.region (line 1): mechanism PLAIN has no region; leave it out"},
		{"no token's server", kafkaWith("sasl: {mechanism: OAUTHBEARER}"), "sinks[0].kafka.sasl.oauth (line 1): missing; mechanism OAUTHBEARER needs it"},
		{"no token's URL", kafkaWith("sasl: {mechanism: OAUTHBEARER, oauth: {clientId: c, clientSecret: s}}"), "sinks[0].kafka.sasl.oauth.tokenUrl (line 1): missing; a token cannot be requested without it"},
		{"list for topic settings", kafkaWith("topicConfig: [a]"), "sinks[0].kafka.topicConfig (line 1): want a mapping, have a list"},
		{"mapping for a topic setting", kafkaWith("topicConfig: {a: {b: c}}"), "sinks[0].kafka.topicConfig.a (line 1): want a string, have a mapping"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse("c.yaml", []byte(test.file), testEnv)
			wantError(t, err, "configuration c.yaml: "+test.want)
		})
	}
}

func sinkWith(yaml string) string { return "sinks:\n- name: a\n  file: {path: /f}\n  " + yaml + "\n" }

// involvedWith has events that tell a sink, of which this is a key, of Pods.
func involvedWith(yaml string) string {
	return "resources:\n- {resource: pods, before: true}\n- {resource: events.events.k8s.io, involved: [labels]}\n- '*'\nsinks: [{file: {path: /f}, " + yaml + "}]\n"
}

// audited receives users.
const audited = "audit: {listen: ':9443', tls: {cert: /c, key: /k}, clientCA: /a}\n"

const auditTLS = "audit.tls (line 1): want cert and key, files in PEM with the certificate that the API server is shown, and with its private key"

func natsWith(yaml string) string { return "sinks: [{nats: {url: 'nats://h', " + yaml + "}}]\n" }

func kafkaWith(yaml string) string { return "sinks: [{kafka: {brokers: ['h:1'], " + yaml + "}}]\n" }

// All problems come at once, those of reading and those of meaning, in the file's order.
func TestAllProblems(t *testing.T) {
	_, err := Parse("c.yaml", []byte(`cluster: 7
resources:
- Pods
- {resource: secrets, namespace: a}
sinks:
- kafak: {topic: a}
- name: b
  nats: {url: 'nats://h', subject: '{x}', pasword: p}
  queue:
    bytes: true
    full: drop
- nats: {stream: '${NONE}'}
lisen: ':8080'
`), testEnv)
	wantError(t, err, `configuration c.yaml: 11 problems:
  cluster (line 1): want a string, have 7; put it in quotes
  resources[0] (line 3): "Pods" cannot be a resource; write it as kubectl does: pods, deployments.apps, *.cert-manager.io or *
  resources[1].namespace (line 4): unknown key; did you mean namespaces? allowed: `+keysOf(&Resource{})+`
  sinks[0].kafak (line 6): unknown key; did you mean kafka? allowed: `+keysOf(&Sink{})+`
  sinks[1].nats.pasword (line 8): unknown key; did you mean password? allowed: `+keysOf(&NATS{})+`
  sinks[1].nats.subject (line 8): unknown placeholder {x}; allowed: {cluster}, {group}, {resource}, {namespace}, {name}, {version}, {kind}, {label:KEY}, {namespaceLabel:KEY}
  sinks[1].queue.bytes (line 10): want a size such as 64Mi, have true
  sinks[1].queue.full (line 11): unknown value "drop"; allowed: block, spool, coalesce
  sinks[2].nats.stream (line 12): environment variable NONE is not set; set it, or write $${NONE} for the plain text
  sinks[2].nats.url (line 12): missing; want servers such as nats://host:4222
  lisen (line 13): unknown key; did you mean listen? allowed: `+keysOf(&Config{}))
}

func TestTwoSinksWithoutName(t *testing.T) {
	_, err := Parse("c.yaml", []byte("sinks:\n- file: {path: /f}\n- file: {path: /g}\n- file: {path: '-'}\n"), testEnv)
	wantError(t, err, `configuration c.yaml: 2 problems:
  sinks[0].name (line 2): missing; 2 sinks of kind file have none, give each a name
  sinks[1].name (line 3): missing; 2 sinks of kind file have none, give each a name`)
}

func TestValidateMissesWhatIsNeeded(t *testing.T) {
	want := `configuration: 2 problems:
  resources: none; name what to watch here or with --resources, such as pods,deployments.apps
  sinks: none; say where changes go here or with --sink, such as --sink -`
	c := new(Config)
	c.Default()
	wantError(t, c.Validate(), want)
	wantError(t, parse(t, "cluster: a\n").Validate(), strings.Replace(want, "configuration", "configuration c.yaml", 1))
}

// A configuration that code put together has been through no decoder.
func TestValidateOfCode(t *testing.T) {
	c := &Config{Resources: []Resource{{Name: "pods"}}, Sinks: []Sink{
		{Name: "a", File: &File{Path: "/f", Rotate: -1, Keep: -1}, Queue: Queue{Bytes: -1, Records: -1}, Resync: -1},
		{Name: "b", NATS: &NATS{URL: "nats://h", Replicas: -1, MaxAge: -1}},
	}}
	c.Default()
	wantError(t, c.Validate(), `configuration: 7 problems:
  sinks[0].file.rotate: want a size of at least 0, have -1
  sinks[0].file.keep: want a whole number, at least 0, have -1
  sinks[0].queue.bytes: want a size of at least 1, have -1
  sinks[0].queue.records: want a whole number, at least 1, have -1
  sinks[0].resync: want a length of time of at least 1m, have -1ns
  sinks[1].nats.replicas: want a whole number from 1 to 5, have -1
  sinks[1].nats.maxAge: want a length of time such as 10h or 1h30m, have -1ns`)
}

func TestLoadMissingFile(t *testing.T) {
	_, err := Load("testdata/none.yaml", testEnv)
	wantError(t, err, "configuration testdata/none.yaml: read the file: no such file or directory; correct the path that --config gives, or the rights of the file")
}

func TestClosest(t *testing.T) {
	names := []string{"url", "user", "name", "kafka", "labelSelector"}
	for key, want := range map[string]string{
		"URL": "url", "uesr": "user", "kafak": "kafka", "kafkaa": "kafka", "LabelSelectors": "labelSelector",
		"": "", "xyz": "", "topic": "", strings.Repeat("url", 1000): "",
	} {
		if got := Closest(key, names); got != want {
			t.Errorf("%q: have %q, want %q", key, got, want)
		}
	}
}
