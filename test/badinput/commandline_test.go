package badinput

import (
	"net"
	"os"
	"strings"
	"testing"
)

// TestWrongCommandLineExits2 needs no cluster: nothing is asked before the command line is right.
func TestWrongCommandLineExits2(t *testing.T) {
	d := emptyDesk(t)
	for _, c := range []struct{ name, line, want string }{
		{"unknown command", "bogus", `unknown command "bogus": see exporter --help`},
		{"misspelt command", "rum", `unknown command "rum": did you mean run? see exporter --help`},
		{"unknown command of checkpoint", "checkpoint remove", `unknown command "remove": see exporter checkpoint --help`},
		{"argument", "run pods", `unexpected argument "pods": see exporter run --help`},
		{"URL where a command belongs", "nats://me:" + password + "@bus", `unknown command "…@bus": see exporter --help`},
		{"unknown flag", "run --bogus", "unknown flag: --bogus: see exporter run --help"},
		{"misspelt flag with a password", "run --snik=nats://me:" + password + "@bus", "unknown flag: --snik: did you mean --sink? see exporter run --help"},
		{"misspelt flag of another command", "tail --resorces pods", "unknown flag: --resorces: did you mean --resources? see exporter tail --help"},
		{"two names", "inventory get --resources pods web db", `unexpected argument "db": see exporter inventory get --help`},
		{"flag without its value", "run --sink", "flag needs an argument: --sink: see exporter run --help"},
		{"nothing to watch and no sink", "run", "configuration: 2 problems:\n" +
			"  resources: none; name what to watch here or with --resources, such as pods,deployments.apps\n" +
			"  sinks: none; say where changes go here or with --sink, such as --sink -"},
		{"no sink", "run --resources pods", "configuration: sinks: none; say where changes go here or with --sink, such as --sink -"},
		{"no resources", "run --sink -", "configuration: resources: none; name what to watch here or with --resources, such as pods,deployments.apps"},
		{"several wrong values", "run --resources Pods --sink - --format xml --log-level loud --log-format yaml --listen 8080", "command line: 5 problems:\n" +
			"  --format: unknown value \"xml\"; allowed: cloudevents, cloudevents-binary, debezium, object\n" +
			"  --log-level: unknown value \"loud\"; allowed: debug, info, warn, error\n" +
			"  --log-format: unknown value \"yaml\"; allowed: text, json\n" +
			"  --listen: want an address such as :8080 or 127.0.0.1:8080, have \"8080\"\n" +
			"  --resources: \"Pods\" cannot be a resource; write it as kubectl does: pods, deployments.apps, *.cert-manager.io or *"},
		{"parameter of standard output", "run --resources pods --sink -?nmae=x", "command line: --sink -?nmae=x: unknown parameter after the ?; allowed: name"},
		{"sinks of one name", "run --resources pods --sink file:///a?name=out --sink file:///b?name=out", `configuration: sinks[1].name: "out" is the name of sinks[0] already; give each sink its own`},
		{"configuration missing", "run -f nope.yaml", "configuration nope.yaml: read the file: no such file or directory; correct the path that --config gives, or the rights of the file"},
		{"configuration is a directory", "check -f .", "configuration .: read the file: is a directory; correct the path that --config gives, or the rights of the file"},
		{"output format", "checkpoint show -o yaml", `--output "yaml": want text or json`},
		{"output format of the inventory", "inventory list -o yaml", `--output "yaml": want table or json`},
		{"nothing to get", "inventory get", "nothing to find: give a NAME with --resources, or --uid"},
		{"name of nothing", "inventory get web", `--resources is missing: say what "web" is the name of`},
		{"two names", "inventory get --resources pods web db", `unexpected argument "db": see exporter inventory get --help`},
		{"unknown command of inventory", "inventory lsit", `unknown command "lsit": did you mean list? see exporter inventory --help`},
		{"two exporters", "snapshot --state-dir state --server 127.0.0.1:8080", "--server and --state-dir: give one of them"},
		{"server that is none", "snapshot --server https://me:" + password + "@h", `--server "…@h": want an address such as http://127.0.0.1:8080`},
		{"argument of snapshot", "snapshot pods", `unexpected argument "pods": see exporter snapshot --help`},
		{"set without anything", "checkpoint set", "command line: 2 problems:\n" +
			"  --stream is missing: give a stream as exporter checkpoint show prints it\n" +
			"  --resource-version is missing: give a number like an object's metadata.resourceVersion"},
		{"version that is none", "checkpoint set --stream pods --resource-version latest",
			`--resource-version "latest": want a number like an object's metadata.resourceVersion`},
		{"reset without confirmation", "checkpoint reset --state-dir state", "reset removes the state in state for good: confirm it with --yes"},
		{"port that is none", "dev --nats-listen :nats-port", `--nats-listen ":nats-port": unknown port: want host:port`},
		{"resource of a namespace to tail", "tail --resources shop/pods", `--resources "shop/pods": want a resource without a namespace, a version and *: pods or deployments.apps`},
		{"wildcard to tail", "tail --sink file:///a --resources *.apps", `--resources "*.apps": want a resource without a namespace, a version and *: pods or deployments.apps`},
		{"version to tail", "tail --sink file:///a --resources deployments.v1.apps", `--resources "deployments.v1.apps": want a resource without a namespace, a version and *: pods or deployments.apps`},
		{"several mistakes of tail", "tail --sink file:///a --namespace Shop --name a[ --op made -o xml", "command line: 4 problems:\n" +
			"  --output \"xml\": want text or json\n" +
			"  --namespace: \"Shop\" cannot be a namespace; want lower case letters, digits and -\n" +
			"  --name \"a[\": want an object's name, in which * stands for any text\n" +
			"  --op \"made\": want added, updated, deleted, replaced, sync, snapshot.begin, snapshot.end, gap, actor"},
		{"empty sink of tail", "tail --sink=", "--sink is empty: give the name of a configured sink, or without --config its URL"},
		{"nothing to verify", "verify", "command line: 2 problems:\n" +
			"  --resources is missing: name what the exporter streams, such as pods,deployments.apps, or give its --config\n" +
			"  --sink is missing: give the URL of a sink as for exporter run, or the exporter's --config"},
		{"resource of a namespace to verify", "verify --resources shop/pods --sink file:///a",
			`--resources: "shop/pods" cannot be a resource; write it as kubectl does: pods, deployments.apps, *.cert-manager.io or *`},
		{"no time to verify", "verify --resources pods --sink file:///a --timeout -5s", "--timeout -5s: want 0 or more"},
		{"namespace of the inventory", "inventory list -n Shop", `--namespace: "Shop" cannot be a namespace; want lower case letters, digits and -`},
		{"address of the embedded server", "dev --nats-listen 4222", `--nats-listen "4222": missing port in address: want host:port`},
	} {
		t.Run(c.name, func(t *testing.T) { d.exporter(words(c.line)...).fails(t, 2, c.want) })
	}
	if left := d.files(); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestWrongSinkURLExits2(t *testing.T) {
	const forms = "file:///path/out.ndjson, - (standard output), kafka://host:9092,host:9092, nats://host:4222?stream=NAME or tls://host:4222?stream=NAME"
	d := emptyDesk(t)
	for _, c := range []struct{ name, sink, want string }{
		{"no URL", "bus", "--sink bus: want " + forms},
		{"unknown kind", "pulsar://h:9092", `--sink pulsar://h:9092: this build has no sink of kind "pulsar"; want ` + forms},
		{"relative file", "file://out.ndjson", "--sink file://out.ndjson: want the whole path of a file after three slashes, as in file:///path/out.ndjson"},
		{"port", "nats://me:" + password + "@h:port", "--sink nats://***@h:port: want servers such as nats://host:4222, in user and password special characters as %XX"},
		{"parameter", "nats://me:" + password + "@h?subject=x", "--sink nats://***@h?subject=x: unknown parameter after the ?; allowed: name, stream"},
		{"stream", "nats://h?stream=a.b", `--sink nats://h?stream=a.b: "a.b" cannot be a stream; leave out white space and any of .*>/\`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d.exporter("run", "--resources", "pods", "--sink", c.sink).fails(t, 2, "command line: "+c.want)
		})
	}
}

// TestConfigurationMistakesAreNamedAtOnce has the lines of the file, and shows no secret of it.
func TestConfigurationMistakesAreNamedAtOnce(t *testing.T) {
	d := emptyDesk(t)
	d.write("config.yaml", `cluster: prod
resource: [pods]
sinks:
  - {name: a, file: {path: "-"}, fromat: cloudevents, resync: 1s}
  - name: a
    nats:
      url: nats://me:`+password+`@h
      subject: "k8s.{namspace}"
      token: [`+password+`]
      replicas: many
  - {name: c}
`)
	d.exporter("run", "-f", "config.yaml").fails(t, 2, `configuration config.yaml: 8 problems:
  resource (line 2): unknown key; did you mean resources? allowed: audit, cluster, clusters, discovery, ha, hash, listen, log, redactKey, resources, sinks, snapshot, state, tasks
  sinks[0].fromat (line 4): unknown key; did you mean format? allowed: actors, deadLetter, drop, file, filter, format, kafka, name, nats, onLeave, only, ops, oversize, queue, redact, resolved, resources, resync, trim, updates
  sinks[0].resync (line 4): want a length of time of at least 1m, have "1s"
  sinks[1].name (line 5): "a" is the name of sinks[0] already; give each sink its own
  sinks[1].nats.subject (line 8): unknown placeholder {namspace}; allowed: {cluster}, {group}, {resource}, {namespace}, {name}, {version}, {kind}, {label:KEY}, {namespaceLabel:KEY}
  sinks[1].nats.token (line 9): want a string; put it in quotes
  sinks[1].nats.replicas (line 10): want a whole number from 1 to 5, have "many"
  sinks[2] (line 11): no destination; give it one of file, kafka, nats`)
}

// TestClusterAndTaskMistakesAreNamedAtOnce: places that are one for several, names that are taken, and more tasks than
// there is to do.
func TestClusterAndTaskMistakesAreNamedAtOnce(t *testing.T) {
	d := emptyDesk(t)
	d.write("clusters.yaml", `clusters:
  - {name: a, kubeconfig: /k}
  - {name: a, kubeconfig: /other}
  - {name: b, kubeconfig: /k}
resources: [pods]
sinks:
  - {name: out, file: {path: out.ndjson}}
  - {name: bus, nats: {url: "nats://h", stream: K8S}}
  - {name: lake, kafka: {brokers: ["h:1"], topic: k8s}}
`)
	d.exporter("check", "-f", "clusters.yaml").fails(t, 2, `configuration clusters.yaml: 5 problems:
  clusters[1].name (line 3): another cluster is called "a", too; choose another name
  clusters[2] (line 4): it is reached as clusters[0] is, and so is the same cluster; give it another kubeconfig, secret or context
  sinks[0].file.path (line 7): "out.ndjson" is one place for all clusters; have {cluster} in it
  sinks[1].nats.stream (line 8): "K8S" is one place for all clusters; have {cluster} in it
  sinks[2].kafka.topic (line 9): "k8s" is one place for all clusters; have {cluster} in it`)
	d.write("tasks.yaml", `cluster: prod
tasks: 3
resources: [{resource: pods, task: 4}, events]
sinks:
  - {name: bus, nats: {url: "nats://h", stream: "K8S_{cluster}_{task}"}}
  - {name: lake, kafka: {brokers: ["h:1"], topic: k8s}}
`)
	d.exporter("check", "-f", "tasks.yaml").fails(t, 2, `configuration tasks.yaml: 5 problems:
  tasks (line 2): several tasks are for several exporters, which share them; add ha, or leave it out
  tasks (line 2): 3 is more than there are resources, which are 2; take at most as many
  resources[0].task (line 3): want a number from 1 to 3, as many as there are tasks, have 4
  sinks[0].nats.subject (line 5): "k8s.{cluster}.{group}.{resource}.{namespace}.{name}" is one place for all tasks; have {task} in it
  sinks[1].kafka.topic (line 6): "k8s" is one place for all tasks; have {task} or {resource} in it`)
	d.exporter("tasks", "--sink", "-", "--resources", "pods").fails(t, 2, "ha is missing: the exporters of this configuration share nothing")
	d.exporter("check", "--sink", "-", "--resources", "pods", "--task", "2").fails(t, 2, "--task 2: the configuration has 1")
}

func TestConfigurationThatIsNoYAML(t *testing.T) {
	d := emptyDesk(t)
	d.write("config.yaml", "sinks: [\n")
	d.exporter("run", "-f", "config.yaml").fails(t, 2, "configuration config.yaml: line 2: not YAML: did not find expected node content; look at the indentation, brackets and quotes of this line and of the one before")
}

func TestListenAddressInUse(t *testing.T) {
	d := newDesk(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	address := listener.Addr().String()
	d.exporter(usual("--resources", "configmaps", "--sink", "-", "--listen", address)...).fails(t, 1,
		"listen on "+address+": address already in use: choose another address with --listen, or with listen in the configuration")
	d.exporter("dev", "--nats-listen", address).fails(t, 1,
		"listen on "+address+": address already in use: choose another address with --nats-listen")
}

// TestHelpIsNoMistake: a command that is nothing without its own commands explains itself.
func TestHelpIsNoMistake(t *testing.T) {
	d := emptyDesk(t)
	for _, line := range []string{"", "--help", "checkpoint", "inventory", "snapshot --help", "inventory get --help", "run --help", "checkpoint set --help"} {
		if r := d.exporter(words(line)...); r.Code != 0 || r.Stderr != "" || r.Stdout == "" {
			t.Errorf("exporter %s: exit code %d, standard error %q", line, r.Code, r.Stderr)
		}
	}
	if _, err := os.Stat(d.path("state")); err == nil {
		t.Error("a state was made")
	}
}

// TestI6AnErrorIsNoLongLine, whatever it is about.
func TestI6AnErrorIsNoLongLine(t *testing.T) {
	o := emptyDesk(t).exporter("verify", "--output", strings.Repeat("n", 100_000))
	if o.Code != 2 || len(o.Stderr) > 10_000 || !strings.HasPrefix(o.Stderr, `exporter: --output "nnn`) {
		t.Errorf("exit code %d and %d bytes: %.300s", o.Code, len(o.Stderr), o.Stderr)
	}
}
