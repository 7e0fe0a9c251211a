package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fleet is one exporter that follows the API servers of several worlds, which write nothing but to their own logs.
type fleet struct {
	t        *testing.T
	dir      string
	broker   *broker
	exporter *exporter // of all
	port     string
	worlds   map[string]*rig // by the cluster's name
	names    []string        // of those that have a world
}

// newFleet starts worlds of these names, and a broker. The exporter is not started, and is told of no cluster yet.
func newFleet(t *testing.T, names ...string) *fleet {
	t.Helper()
	f := &fleet{t: t, dir: t.ArtifactDir(), port: fmt.Sprintf("127.0.0.1:%d", freePort(t)), worlds: map[string]*rig{}, names: names}
	f.broker = newBroker(t, f.dir)
	f.exporter = &exporter{binary: built.Path(t), logPath: filepath.Join(f.dir, "fleet.log"), listen: f.port}
	f.exporter.args = []string{"run", "--config", f.config()}
	for i, name := range names {
		r := newWorld(t, world{})
		if i == 0 {
			f.exporter.env = []string{"KUBECONFIG=" + r.cluster.Kubeconfig()}
		}
		r.broker, r.stream, r.file = f.broker, followLog(f.broker.openStream("K8S_"+name)), followFile(filepath.Join(f.dir, name+".ndjson"))
		r.exporter = &exporter{logPath: f.exporter.logPath, listen: f.port + "/tasks/" + name}
		f.worlds[name] = r
	}
	return f
}

func (f *fleet) config() string { return filepath.Join(f.dir, "fleet.yaml") }

// follow has the exporter follow these clusters, each a line of YAML.
func (f *fleet) follow(clusters ...string) {
	f.t.Helper()
	resources := f.worlds[f.names[0]].names()
	text := fmt.Sprintf("clusters:\n- %s\nresources: [%s]\nstate: {dir: %s}\nlisten: %s\ndiscovery: {interval: 1s}\nsinks:\n- nats: {url: %q}\n- file: {path: %q}\n",
		strings.Join(clusters, "\n- "), strings.Join(resources, ", "), filepath.Join(f.dir, "state"), f.port, "nats://"+f.broker.address(), filepath.Join(f.dir, "{cluster}.ndjson"))
	if err := os.WriteFile(f.config()+".new", []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(f.config()+".new", f.config()); err != nil {
		f.t.Fatal(err)
	}
}

// of is the cluster's line.
func (f *fleet) of(name string) string {
	return fmt.Sprintf("{name: %s, kubeconfig: %s}", name, f.worlds[name].cluster.Kubeconfig())
}

// keep puts the kubeconfig into a Secret of the first cluster, which is home.
func (f *fleet) keep(name, kubeconfig string) {
	f.t.Helper()
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		f.t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name}, "stringData": map[string]any{"value": string(text)},
	}}
	secrets := f.worlds[f.names[0]].client.Resource(core("secrets")).Namespace("default")
	if _, err := secrets.Apply(f.t.Context(), name, object, metav1.ApplyOptions{FieldManager: "test"}); err != nil {
		f.t.Fatal(err)
	}
}

// start starts the exporter, which all worlds have.
func (f *fleet) start() {
	f.t.Helper()
	f.exporter.start(f.t)
	for _, r := range f.worlds {
		r.exporter.process = f.exporter.process
	}
}

// clusterStatus is what /statusz says of a cluster.
type clusterStatus struct {
	Up      bool
	Problem string
}

// statuses is nil where the exporter does not answer yet.
func (f *fleet) statuses() map[string]clusterStatus {
	f.t.Helper()
	answer, err := http.Get("http://" + f.port + "/statusz")
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	var all struct{ Tasks map[string]clusterStatus }
	if err := json.NewDecoder(answer.Body).Decode(&all); err != nil {
		f.t.Fatal(err)
	}
	return all.Tasks
}

// await returns when the status of the cluster is so.
func (f *fleet) await(name, what string, holds func(clusterStatus) bool) {
	f.t.Helper()
	eventually(f.t, deliveryLimit, fmt.Sprintf("cluster %s %s", name, what), func() bool { return holds(f.statuses()[name]) })
}

// TestI3I4OneExporterFollowsSeveralClusters, each once, in order and without a gap, over kills. Meanwhile one cluster
// cannot be reached, one has a second name, one loses its API server, one comes and one goes.
func TestI3I4OneExporterFollowsSeveralClusters(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "a", "b", "late")
	away := kubeconfigTo(t, fmt.Sprintf("https://127.0.0.1:%d", freePort(t)), f.worlds["a"].cluster.Kubeconfig(), filepath.Join(f.dir, "away"))
	address, err := f.worlds["a"].cluster.APIServerAddress()
	if err != nil {
		t.Fatal(err)
	}
	again := kubeconfigTo(t, "https://"+address, f.worlds["a"].cluster.Kubeconfig(), filepath.Join(f.dir, "again"))
	broken := []string{fmt.Sprintf("{name: away, kubeconfig: %s}", away), fmt.Sprintf("{name: again, kubeconfig: %s}", again)}
	f.follow(append([]string{f.of("a"), f.of("b")}, broken...)...)
	a, b, late := f.worlds["a"], f.worlds["b"], f.worlds["late"]
	a.summon()
	for _, name := range f.names {
		f.worlds[name].writer.populate(t)
		f.worlds[name].writer.start(t)
	}
	random := rand.New(rand.NewPCG(seed(t), 4000))
	for range kills(t, 4) {
		f.start()
		for _, r := range []*rig{a, b} {
			r.file.awaitMore(t, f.exporter, len(r.file.all(t))+1+random.IntN(100))
		}
		f.exporter.process.Kill()
	}
	f.start()
	f.await("away", "is told to be away", func(s clusterStatus) bool { return !s.Up && strings.Contains(s.Problem, "connection refused") })
	f.await("again", "is told to be another", func(s clusterStatus) bool {
		return !s.Up && strings.Contains(s.Problem, "cluster again is cluster a")
	})
	said, err := exec.Command(f.exporter.binary, "check", "-f", f.config()).CombinedOutput()
	for _, want := range []string{"problem  task away: reach the API server", "problem  task again: it is cluster a, too", "ok       task b: cluster b at"} {
		if err == nil || !strings.Contains(string(said), want) {
			t.Errorf("exporter check ends with %v, and lacks %q: %s", err, want, said)
		}
	}

	b.cluster.KillAPIServer()
	a.file.awaitMore(t, f.exporter, len(a.file.all(t))+100) // nobody waits for b
	if err := b.cluster.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	way, server := newProxy(t, strings.TrimPrefix(late.cluster.RESTConfig().Host, "https://")), late.cluster.Kubeconfig()
	f.keep("late", kubeconfigTo(t, "https://"+way.address(), server, filepath.Join(f.dir, "late")))
	const secret = "{name: late, secret: default/late}"
	f.follow(f.of("a"), f.of("b"), secret)
	f.await("late", "is followed", func(s clusterStatus) bool { return s.Up })
	late.file.awaitMore(t, f.exporter, len(late.file.all(t))+100)
	way.close()
	f.keep("late", server)
	if all := f.statuses(); len(all) != 3 {
		t.Errorf("followed are %v", all)
	}
	f.follow(f.of("b"), secret)
	eventually(t, deliveryLimit, "a is followed no more", func() bool { return len(f.statuses()) == 2 })
	f.follow(f.of("a"), f.of("b"), secret)
	f.await("a", "is followed again", func(s clusterStatus) bool { return s.Up })
	for _, r := range []*rig{a, b, late} {
		r.settle()
	}
	f.answers()
	f.exporter.stop(t)
	for name, gaps := range map[string]bool{"a": false, "b": true, "late": false} {
		f.worlds[name].judge(gaps)
	}
}

// answers asks what an operator would.
func (f *fleet) answers() {
	f.t.Helper()
	metrics := f.exporter.get(f.t, "/metrics")
	for _, name := range f.names {
		if series := fmt.Sprintf(`kubecdc_task_up{task="%s"} 1`, name); !strings.Contains(metrics, series) {
			f.t.Errorf("/metrics lacks %s", series)
		}
		if series := fmt.Sprintf(`kubecdc_build_info{cluster="%s"`, name); !strings.Contains(metrics, series) {
			f.t.Errorf("/metrics lacks %s", series)
		}
		if page := f.exporter.get(f.t, "/tasks/"+name+"/"); !strings.Contains(page, "page.js") {
			f.t.Errorf("the page of cluster %s is %.200s", name, page)
		}
		run := func(args ...string) string {
			command := exec.Command(f.exporter.binary, args...)
			command.Env = append(os.Environ(), f.exporter.env...)
			said, err := command.CombinedOutput()
			if err != nil {
				f.t.Errorf("exporter %s: %v: %s", strings.Join(args, " "), err, said)
			}
			return string(said)
		}
		run("snapshot", "--state-dir", filepath.Join(f.dir, "state", name), "--resources", "configmaps", "--wait")
		if said := run("verify", "-f", f.config(), "--cluster", name); !strings.Contains(said, "configmaps") {
			f.t.Errorf("exporter verify says of cluster %s: %s", name, said)
		}
	}
	if ready := f.exporter.get(f.t, "/readyz"); !strings.Contains(ready, "ok") {
		f.t.Errorf("/readyz is %s", ready)
	}
}
