package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/testcluster"
)

// kwokVersion is of sigs.k8s.io/kwok, which plays the kubelets of nodes that do not exist.
const kwokVersion = "v0.8.0"

// TestI1I2ALoadLikeARealClustersIsEqualInAllSinks has kwok run E2E_KWOK Pods on a tenth as many nodes, from Pending to
// Running to deleted, with Leases and heartbeats, under "*" and with three sinks. Each has all Pods in each of their
// states, and verify finds it equal when they run and when they are gone.
func TestI1I2ALoadLikeARealClustersIsEqualInAllSinks(t *testing.T) {
	pods := number(t, "E2E_KWOK", 0)
	if pods == 0 {
		t.Skip("E2E_KWOK is how many Pods there are, such as 2000; kwok is built from the module proxy for it")
	}
	r := newLoadedRig(t)
	startProcess(t, filepath.Join(r.dir, "kwok.log"), nil, buildKwok(t), append(kwokStages(t),
		"--kubeconfig", r.cluster.Kubeconfig(), "--manage-all-nodes", "--node-lease-duration-seconds", "40")...)
	r.exporter.start(t)
	eventually(t, deliveryLimit, "the exporter watches all resources", func() bool { return r.exporter.answers(t.Context(), "/readyz") })
	r.addNodes(max(pods/10, 1))
	uids := r.addPods(pods)
	r.awaitPods(fmt.Sprintf("%d Pods run", pods), func(found []unstructured.Unstructured) bool { return running(found) == pods })
	r.expectEqual()
	for _, name := range uids {
		r.deletePod(name)
	}
	r.awaitPods("no Pod is left", func(found []unstructured.Unstructured) bool { return len(found) == 0 })
	r.expectEqual()
	for _, sink := range r.sinks() {
		r.expectLives(sink, uids)
	}
	t.Logf("the exporter had %s in memory at most", r.exporter.peakMemory(t))
	r.exporter.stop(t)
}

// newLoadedRig streams "*" to a file, to JetStream and to Kafka. The exporter is not started.
func newLoadedRig(t *testing.T) *rig {
	t.Helper()
	kafka.RequireReal(t)
	c, b := kafka.Start(t, kafka.Options{}), newBroker(t, t.TempDir())
	sink := kafkaSink{name: "kafka", prefix: "cluster", delivery: "idempotent", more: ", partitions: 3, replication: 1"}
	r := newRigOfWildcard(t, served{
		cluster: testcluster.Options{SplitProcesses: true}, configured: "resources: ['*']\n", context: "dev",
		sinks: fmt.Sprintf("- {name: nats, nats: {url: \"nats://%s\", stream: %s}}\n", b.address(), streamName) + sink.config(c),
	})
	r.broker, r.stream = b, followStream(b)
	r.topics = []*follower{followTopics(c, sink, []string{""})}
	return r
}

// buildKwok returns the program's path.
func buildKwok(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "install", "sigs.k8s.io/kwok/cmd/kwok@"+kwokVersion)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOBIN="+dir)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build kwok: %v: %s", err, said)
	}
	return filepath.Join(dir, "kwok")
}

// kwokStages are arguments with the stages that kwok comes with.
func kwokStages(t *testing.T) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "sigs.k8s.io/kwok@"+kwokVersion)
	cmd.Dir = t.TempDir()
	said, err := cmd.Output()
	var module struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(said, &module)
	}
	if err != nil {
		t.Fatalf("find the stages of kwok: %v: %s", err, said)
	}
	var args []string
	for _, name := range []string{"node/fast/node-initialize", "node/heartbeat/node-heartbeat", "pod/fast/pod-ready", "pod/fast/pod-complete", "pod/fast/pod-delete"} {
		args = append(args, "--config", filepath.Join(module.Dir, "kustomize", "stage", name+".yaml"))
	}
	return args
}

func (r *rig) addNodes(n int) {
	r.t.Helper()
	for i := range n {
		r.make(core("nodes"), map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": fmt.Sprintf("node-%d", i)}})
	}
}

// addPods makes Pods, ten on each node, and returns their names by uid.
func (r *rig) addPods(n int) map[string]string {
	r.t.Helper()
	names := map[string]string{}
	for i := range n {
		manifest := pod()
		manifest["metadata"] = map[string]any{"name": fmt.Sprintf("pod-%d", i)}
		manifest["spec"].(map[string]any)["nodeName"] = fmt.Sprintf("node-%d", i%max(n/10, 1))
		made, err := r.client.Resource(core("pods")).Namespace("default").Create(r.t.Context(), &unstructured.Unstructured{Object: manifest}, metav1.CreateOptions{})
		if err != nil {
			r.t.Fatal(err)
		}
		names[string(made.GetUID())] = made.GetName()
	}
	return names
}

func (r *rig) deletePod(name string) {
	r.t.Helper()
	err := r.client.Resource(core("pods")).Namespace("default").Delete(r.t.Context(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		r.t.Fatal(err)
	}
}

func (r *rig) awaitPods(what string, holds func([]unstructured.Unstructured) bool) {
	r.t.Helper()
	eventually(r.t, 10*time.Minute, what, func() bool {
		found, err := r.client.Resource(core("pods")).Namespace("default").List(r.t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			r.t.Fatal(err)
		}
		return holds(found.Items)
	})
}

func running(pods []unstructured.Unstructured) (n int) {
	for i := range pods {
		if phaseOf(pods[i].Object) == "Running" {
			n++
		}
	}
	return n
}

func phaseOf(pod map[string]any) string {
	phase, _, err := unstructured.NestedString(pod, "status", "phase")
	if err != nil {
		return err.Error()
	}
	return phase
}

// expectEqual has the exporter compare the cluster with all three sinks.
func (r *rig) expectEqual() {
	r.t.Helper()
	args := []string{
		"verify", "--config", r.configPath(), "--kubeconfig", r.cluster.Kubeconfig(), "--context", "dev",
		"--state-dir", filepath.Join(r.dir, "state"), "--timeout", "4m",
	}
	said, err := exec.CommandContext(r.t.Context(), r.exporter.binary, args...).CombinedOutput()
	if count := strings.Count(string(said), "equal: "); err != nil || count != len(r.sinks()) {
		r.t.Errorf("exporter verify: %v; %d sinks are equal, want %d:\n%s", err, count, len(r.sinks()), said)
	}
	r.t.Logf("verify: %q", regexp.MustCompile(`(?m)^(sink .*|equal: .*)$`).FindAllString(string(said), -1))
}

// expectLives wants each Pod Pending, Running and once deleted.
func (r *rig) expectLives(sink *follower, pods map[string]string) {
	r.t.Helper()
	seen := map[string]map[string]int{}
	told := sink.all(r.t)
	for i := range told {
		e := &told[i]
		if pods[e.UID] == "" {
			continue
		}
		var object map[string]any
		if err := json.Unmarshal(e.Data, &object); err != nil {
			r.t.Fatal(err)
		}
		if seen[e.UID] == nil {
			seen[e.UID] = map[string]int{}
		}
		seen[e.UID][e.op()]++
		seen[e.UID][phaseOf(object)]++
	}
	r.t.Logf("%s: %d events", sink.name, len(told))
	for uid, name := range pods {
		if s := seen[uid]; s["added"] != 1 || s["Pending"] == 0 || s["Running"] == 0 || s["deleted"] != 1 {
			r.t.Errorf("sink %s was told of %s: %v", sink.name, name, s)
		}
	}
}
