package deploy

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"sigs.k8s.io/yaml"

	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/test/deploy/chart"
	"github.com/kubecdc/kubecdc/test/deploy/generated"
)

// TestBadValuesAreRefusedByTheirNames: what Helm says has the path of the value.
func TestBadValuesAreRefusedByTheirNames(t *testing.T) {
	for _, c := range []struct{ name, values, want string }{
		{"misspelt value", "imgae: {}", "additional properties 'imgae' not allowed"},
		{"misspelt key", "image: {tags: v1}", "at '/image': additional properties 'tags' not allowed"},
		{"policy", "image: {pullPolicy: Sometimes}", "at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'"},
		{"digest", "image: {digest: latest}", "at '/image/digest': 'latest' does not match pattern"},
		{"stop too short", "terminationGracePeriodSeconds: 10", "at '/terminationGracePeriodSeconds': minimum: got 10, want 25"},
		{"root", "podSecurity: {runAsUser: 0}", "at '/podSecurity/runAsUser': minimum: got 0, want 1"},
		{"size", "persistence: {size: large}", "at '/persistence/size': 'large' does not match pattern"},
		{"mode", "persistence: {accessMode: ReadWriteMany}", "at '/persistence/accessMode'"},
		{"no number", "service: {port: http}", "at '/service/port': got string, want integer"},
		{"budget", "podDisruptionBudget: {maxUnavailable: 2}", "at '/podDisruptionBudget/maxUnavailable': maximum: got 2, want 1"},
		{"secret without key", "secretEnv: {A: {name: x}}", "at '/secretEnv/A': missing property 'key'"},
		{"variable", "secretEnv: {A-B: {name: x, key: password}}", "invalid propertyName 'A-B'"},
		{"file of nothing", "files: [{path: /x}]", "at '/files/0': minProperties: got 1, want 2"},
		{"cluster without a name", "config: {cluster: ''}", "at '/config/cluster': '' does not match pattern"},
		{"no sinks", "config: {sinks: []}", "at '/config/sinks': minItems: got 0, want 1"},
		{"no resources", "config: {resources: null}", "at '/config': missing property 'resources'"},
		{"loopback", "config: {listen: \"127.0.0.1:8080\"}", "at '/config/listen': '127.0.0.1:8080' does not match pattern"},
		{"relative state", "config: {state: {dir: state}}", "at '/config/state/dir': 'state' does not match pattern"},
		{"misspelt key of the exporter", "config: {lisen: ':1'}", "at '/config': additional properties 'lisen' not allowed"},
		{"misspelt key of a sink", "config: {sinks: [{kafka: {broker: [a]}}]}", "at '/config/sinks/0/kafka': additional properties 'broker' not allowed"},
		{"format", "config: {sinks: [{file: {path: '-'}, format: csv}]}", "at '/config/sinks/0/format': 'csv' does not match pattern '^(cloudevents|"},
		{"type in a sink", "config: {sinks: [{file: {path: 7}}]}", "at '/config/sinks/0/file/path': got number, want string"},
		{"key of a resource", "config: {resources: [{resource: pods, namespace: shop}]}", "additional properties 'namespace' not allowed"},
		{"everything", `config: {resources: [pods, "*"]}`, `config.resources[1]: "*" needs a role that may list and watch everything, Secrets among it: set rbac.wildcard to true, or name the resources`},
		{"size of the exporter", "config: {sinks: [{file: {path: '-', rotate: 5MB}}]}", "at '/config/sinks/0/file/rotate': '5MB' does not match pattern"},
		{"duration without a unit", "config: {discovery: {interval: 10}}", "at '/config/discovery/interval': maximum: got 10, want 0"},
		{"duration of another language", "config: {discovery: {interval: 10 seconds}}", "at '/config/discovery/interval': '10 seconds' does not match pattern"},
		{"password", "config: {sinks: [{name: bus, nats: {url: 'nats://x:4222', user: me, password: plain}}]}",
			"config.sinks[0].nats.password: it would be readable in a ConfigMap: write ${NAME} here, and the Secret that has it under secretEnv.NAME"},
		{"password of an URL", "config: {sinks: [{name: bus, nats: {url: 'nats://me:plain@x:4222'}}]}",
			"config.sinks[0].nats.url: its password would be readable in a ConfigMap: write ${NAME} in its place"},
		{"password of an URL with a dollar", "config: {sinks: [{name: bus, nats: {url: 'nats://me:pla$in@x:4222'}}]}", "config.sinks[0].nats.url: its password would be readable"},
		{"token of an URL", "config: {sinks: [{name: bus, nats: {url: 'nats://y:4222, nats://plain@x:4222'}}]}", "config.sinks[0].nats.url: its password would be readable"},
		{"password of a token's URL", "config: {sinks: [{name: a, kafka: {brokers: ['x:9092'], sasl: {mechanism: OAUTHBEARER, oauth: {tokenUrl: 'https://me:plain@x', clientId: a}}}}]}",
			"config.sinks[0].kafka.sasl.oauth.tokenUrl: its password would be readable"},
		{"password that only looks like a variable", "config: {sinks: [{name: bus, nats: {url: 'nats://x:4222', user: me, password: 'plain$${X}'}}]}",
			"config.sinks[0].nats.password: it would be readable"},
		{"key of the hashes", "config: {redactKey: plain}", "config.redactKey: it would be readable in a ConfigMap"},
		{"file on no volume", "config: {sinks: [{name: out, file: {path: /var/log/out.ndjson}}]}",
			"config.sinks[0].file.path: /var/log/out.ndjson is on no volume, so it cannot be written: use a path below /var/lib/kubecdc, or add a volume"},
		{"file on no volume by way of one", "config: {sinks: [{name: out, file: {path: /var/lib/kubecdc/../out.ndjson}}]}", "config.sinks[0].file.path: /var/lib/out.ndjson is on no volume"},
		{"letters on no volume", "config: {sinks: [{name: log, file: {path: '-'}, deadLetter: {dir: /var/lib/kubecdcx}}]}", "config.sinks[0].deadLetter.dir: /var/lib/kubecdcx is on no volume"},
		{"spools that are larger than the volume", "config: {sinks: [{name: a, nats: {url: 'nats://x'}, queue: {full: spool, spool: 1Gi}}, {name: b, nats: {url: 'nats://y'}, queue: {full: coalesce, spool: 1.1G}}]}",
			"at '/config/sinks/1/queue/spool': '1.1G' does not match pattern"},
		{"spools that are together larger than the volume", "config: {sinks: [{name: a, nats: {url: 'nats://x'}, queue: {full: spool, spool: 1Gi}}, {name: b, nats: {url: 'nats://y'}, queue: {full: coalesce, spool: 1025Mi}}]}",
			"persistence.size: 2Gi is less than the spools may take, which is 1Gi for config.sinks[0].queue.spool, 1025Mi for config.sinks[1].queue.spool: enlarge the volume, or lower the spools"},
		{"spool of the default size", "config: {sinks: [{name: a, nats: {url: 'nats://x'}, queue: {full: spool}}]}", "persistence.size: 2Gi is less than the spools may take, which is 10Gi for"},
		{"spool of the default size of a sink that coalesces", "config: {sinks: [{name: a, nats: {url: 'nats://x'}, queue: {full: coalesce}}]}",
			"persistence.size: 2Gi is less than the spools may take, which is 10Gi for"},
		{"no replicas", "replicas: 0", "at '/replicas': minimum: got 0, want 1"},
		{"two replicas without a log", "replicas: 2", "replicas: several exporters have no volume, and hand over through the log of the state: set config.state.log.sink to the name of a sink"},
		{"two replicas and no log either", "replicas: 2\nconfig: {state: {log: null}}", "replicas: several exporters have no volume"},
		{"two replicas and a file", "replicas: 2\nconfig: {state: {log: {sink: bus}}, sinks: [{name: bus, nats: {url: 'nats://x'}}, {name: log, file: {path: '-'}}]}",
			"config.sinks[1].file: a file keeps nobody out, so a leader that wakes up late would write beside its successor: write to kafka or nats, or set replicas to 1"},
		{"two replicas and a stream of others", "replicas: 2\nconfig: {state: {log: {sink: bus}}, sinks: [{name: bus, nats: {url: 'nats://x', shared: true}}]}",
			"config.sinks[0].nats.shared: a stream that others write to keeps nobody out: give the sink a stream of its own, or set replicas to 1"},
		{"two replicas and one volume", twoReplicas + "persistence: {existingClaim: mine}", "persistence.existingClaim: several exporters have a state each, without a volume"},
		{"two replicas and a spool that is larger than their share of the node", twoReplicas + "persistence: {size: 512Mi}", "persistence.size: 512Mi is less than the spools may take, which is 1Gi for config.sinks[0].queue.spool"},
		{"audit on the pod's own loopback", "config: {audit: {listen: '127.0.0.1:9443'}}\naudit: {secret: a}", "at '/config/audit/listen': '127.0.0.1:9443' does not match pattern"},
		{"audit without an address", "config: {audit: {clientCA: /a}}", "at '/config/audit': missing property 'listen'"},
		{"audit without certificates", "config: {audit: {listen: ':9443'}}", "audit.secret: the audit webhook needs certificates: name a Secret with tls.crt, tls.key and ca.crt, or set"},
		{"audit with a part of its certificates", "config: {audit: {listen: ':9443', clientCA: /a, tls: {cert: /b}}}", "audit.secret: the audit webhook needs certificates"},
		{"audit's certificates for nothing", "audit: {secret: kubecdc-audit}", "audit.secret: nothing receives the audit webhook: set config.audit.listen"},
		{"audit on the port of the metrics", "config: {audit: {listen: ':8080'}}\naudit: {secret: a}", "config.audit.listen: port 8080 is that of config.listen: choose another one"},
		{"audit's certificates twice", "config: {audit: {listen: ':9443'}}\naudit: {secret: a}\nfiles: [{path: /etc/kubecdc/audit/, secret: a}]", "files[0].path: audit.secret is mounted at /etc/kubecdc/audit"},
		{"audit's address", "audit: {clusterIP: kubecdc.example.org}", "at '/audit/clusterIP': 'kubecdc.example.org' does not match pattern"},
		{"group unknown", "config: {resources: [certificates]}", `config.resources[0]: "certificates" is none of Kubernetes' own resources: write it with its group, as in certificates.cert-manager.io`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := chart.Render(release("x", c.values))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// TestI10TheChartNeedsTheClustersName: the same name for two clusters mixes up their objects.
func TestI10TheChartNeedsTheClustersName(t *testing.T) {
	nameless := release("x", "")
	nameless.Cluster = ""
	if _, err := chart.Render(nameless); err == nil || !strings.Contains(err.Error(), "at '/config': missing property 'cluster'") {
		t.Errorf("without a name: %v", err)
	}
}

// TestExampleConfigurationPassesThroughUnchanged: each key that the exporter knows is one that the chart takes, and
// means the same after it.
func TestExampleConfigurationPassesThroughUnchanged(t *testing.T) {
	// in a pod
	example := strings.Replace(read(t, "deploy", "config.example.yaml"), "listen: 127.0.0.1:8080", `listen: ":8080"`, 1)
	values, err := yaml.YAMLToJSON([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	mounted := `"extraVolumeMounts":[{"mountPath":"/var/lib/kubecdc-letters"},{"mountPath":"/var/log/kubecdc"}],"persistence":{"size":"100Gi"}`
	passed := configOf(t, render(t, "x", `{`+mounted+`,"config":`+string(values)+`}`))
	if got, want := parsed(t, passed), parsed(t, example); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// parsed is the configuration as the exporter shows it.
func parsed(t *testing.T, text string) string {
	t.Helper()
	c, err := config.Parse("config.yaml", []byte(text), func(string) (string, bool) { return "x", true })
	if err != nil {
		t.Fatal(err)
	}
	shown, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(shown)
}

// TestLargeNumbersPassThrough: Helm's numbers are floating-point ones, which YAML would show as 1e+06.
func TestLargeNumbersPassThrough(t *testing.T) {
	text := configOf(t, render(t, "x", everyOption))
	if !strings.Contains(parsed(t, text), `"records": 1000000`) {
		t.Errorf("the queue has no 1000000 records:\n%s", text)
	}
}

// TestEveryValueIsDescribed, and nothing that is not known is taken.
func TestEveryValueIsDescribed(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal([]byte(read(t, generated.Chart, "values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	checkDescribed(t, "", schema)
	for set, values := range valueSets() { // that of a set is no surprise to lint either
		var given map[string]any
		if err := yaml.Unmarshal([]byte(values), &given); err != nil {
			t.Fatal(err)
		}
		of, _ := given["config"].(map[string]any)
		if of == nil {
			of, given = map[string]any{}, map[string]any{"config": given["config"]}
			given["config"] = of
		}
		of["cluster"] = "test"
		for _, message := range lint.RunAll(root+"/"+generated.Chart, given, "kubecdc").Messages {
			if message.Severity >= support.WarningSev {
				t.Errorf("lint, %s: %s", set, message)
			}
		}
	}
}

func checkDescribed(t *testing.T, path string, schema map[string]any) {
	if variants, ok := schema["anyOf"].([]any); ok {
		for _, one := range variants {
			checkDescribed(t, path, one.(map[string]any))
		}
	}
	if items, ok := schema["items"].(map[string]any); ok {
		checkDescribed(t, path+"[]", items)
	}
	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		return
	}
	if schema["additionalProperties"] != false {
		t.Errorf("%s takes unknown keys", path)
	}
	for name, property := range properties {
		property := property.(map[string]any)
		if text, ok := property["description"].(string); !ok || len(text) < 5 {
			t.Errorf("%s.%s is not described", path, name)
		}
		checkDescribed(t, path+"."+name, property)
	}
}

// TestGeneratedFilesAreCurrent: make manifests makes them.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	path, schema, err := generated.Schema(root)
	if err != nil {
		t.Fatal(err)
	}
	files, err := generated.Kustomize(root)
	if err != nil {
		t.Fatal(err)
	}
	files[path] = schema
	for name, want := range files {
		if read(t, name) != string(want) {
			t.Errorf("%s is not what the chart says now: run make manifests", name)
		}
	}
	for _, dir := range []string{generated.Manifests, generated.Manifests + "/monitoring"} {
		entries, err := os.ReadDir(root + "/" + dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if name := dir + "/" + entry.Name(); !entry.IsDir() && files[name] == nil {
				t.Errorf("%s is made from nothing: remove it", name)
			}
		}
	}
}
