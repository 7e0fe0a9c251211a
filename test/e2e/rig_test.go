package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/test/testcluster"
)

// rig is a world of its own for one test: an API server, a NATS server, a writer, and an exporter between them that
// the test starts.
type rig struct {
	t        *testing.T
	dir      string
	cluster  *testcluster.Cluster
	client   dynamic.Interface
	broker   *broker
	exporter *exporter
	writer   *writer
	ledger   *ledger
	witness  *witness // nil where the API server is restarted
	began    time.Time

	stream *follower
	file   *follower
}

// newRig starts everything but the exporter. proxied tells how the exporter reaches the NATS server; nil is directly.
// The worlds know nothing of each other, and mostly wait, so their tests run in parallel.
func newRig(t *testing.T, proxied func(address string) string) *rig {
	t.Helper()
	t.Parallel()
	r := &rig{t: t, dir: t.ArtifactDir(), ledger: newLedger(), began: time.Now()}
	r.cluster = testcluster.New(t, testcluster.Options{SplitProcesses: true})
	config := r.cluster.RESTConfig()
	config.Timeout = 10 * time.Second // of one request of the writer
	r.client = connect(t, config)
	r.prepare()
	r.broker = newBroker(t, r.dir)
	address := r.broker.address()
	if proxied != nil {
		address = proxied(address)
	}
	r.exporter = &exporter{binary: exporterBinary(t), logPath: filepath.Join(r.dir, "exporter.log"), args: []string{
		"run", "--kubeconfig", r.cluster.Kubeconfig(), "--resources", resourceFlag,
		"--state-dir", filepath.Join(r.dir, "state"), "--listen", fmt.Sprintf("127.0.0.1:%d", freePort(t)),
	}}
	r.exporter.sinks = []string{"nats://" + address + "?stream=" + streamName, "file://" + r.path()}
	r.stream, r.file = followStream(r.broker.open()), followFile(r.path())
	r.writer = newWriter(r.client, r.ledger, seed(t))
	return r
}

// path is the file sink's.
func (r *rig) path() string { return filepath.Join(r.dir, "out.ndjson") }

// prepare makes what the writer needs, and notes what is there before it.
func (r *rig) prepare() {
	r.t.Helper()
	for _, name := range namespaces {
		r.make(core("namespaces"), map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}})
	}
	r.make(definitions(), widgetDefinition())
	eventually(r.t, 30*time.Second, "widgets are served", func() bool {
		_, err := r.client.Resource(widgets()).List(r.t.Context(), metav1.ListOptions{})
		return err == nil
	})
	for _, resource := range resources() {
		r.eachListed(resource, func(object *unstructured.Unstructured) { r.ledger.found(kubectlName(resource), object) })
	}
}

func (r *rig) make(resource schema.GroupVersionResource, manifest map[string]any) {
	r.t.Helper()
	_, err := r.client.Resource(resource).Create(r.t.Context(), &unstructured.Unstructured{Object: manifest}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		r.t.Fatal(err)
	}
}

// eachListed calls do for all objects of the resource, and returns the list's version.
func (r *rig) eachListed(resource schema.GroupVersionResource, do func(*unstructured.Unstructured)) string {
	r.t.Helper()
	list, err := r.client.Resource(resource).List(r.t.Context(), metav1.ListOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range list.Items {
		do(&list.Items[i])
	}
	return list.GetResourceVersion()
}

// summon gets a witness, who knows the versions of deletes. It is for tests that leave the API server alone.
func (r *rig) summon() {
	r.t.Helper()
	from := map[schema.GroupVersionResource]string{}
	for _, resource := range resources() {
		from[resource] = r.eachListed(resource, func(*unstructured.Unstructured) {})
	}
	r.witness = newWitness(r.t, connect(r.t, r.cluster.RESTConfig()), from)
}

// settle stops the writer and returns when both sinks have everything that it wrote.
func (r *rig) settle() {
	r.t.Helper()
	r.writer.stop(r.t)
	r.await(r.writer.finish(r.t)...)
}

// await returns when both sinks have the objects of the uids, and so, per resource, everything before them.
func (r *rig) await(uids ...string) {
	r.t.Helper()
	for _, sink := range []*follower{r.stream, r.file} {
		for _, uid := range uids {
			sink.await(r.t, r.exporter, "object "+uid, func(e *event) bool { return e.UID == uid })
		}
	}
	if r.witness != nil {
		for _, uid := range uids {
			r.witness.await(r.t, uid)
		}
	}
}

// judge reads both sinks from their begin and judges them. gaps says whether the API server was restarted.
func (r *rig) judge(gaps bool) []*judge {
	r.t.Helper()
	if r.witness != nil {
		r.witness.stop()
		if err := r.ledger.complete(r.witness); err != nil {
			r.t.Fatal(err)
		}
	}
	stream, file := newJudge("nats", r.ledger.histories, gaps), newJudge("file", r.ledger.histories, gaps)
	for j, sink := range map[*judge]*follower{stream: followStream(r.broker.open()), file: followFile(r.path())} {
		events := sink.all(r.t)
		j.hear(events)
		r.compareState(j)
		j.verdict(r.t)
		r.t.Logf("%s: %s", j.sink, figures(events))
	}
	for _, text := range disagreement(stream, file) {
		r.t.Errorf("the sinks disagree: %s", text)
	}
	versions, deletes := r.ledger.count()
	r.t.Logf("API server: %d objects, %d versions, %d deletes; %s", len(r.ledger.histories), versions, deletes, time.Since(r.began).Round(time.Millisecond))
	return []*judge{stream, file}
}

// compareState compares what a consumer believes to exist with the API server's list.
func (r *rig) compareState(j *judge) {
	r.t.Helper()
	state := j.state()
	for _, resource := range resources() {
		r.eachListed(resource, func(object *unstructured.Unstructured) {
			uid, version := string(object.GetUID()), parseVersion(object.GetResourceVersion())
			if state[uid] != version {
				j.fault("%s %s uid=%s is at version %d, the sink at %d", resource.Resource, joined(object.GetNamespace(), object.GetName()), uid, version, state[uid])
			}
			delete(state, uid)
		})
	}
	for uid, version := range state {
		j.fault("the sink has an object that does not exist: uid=%s version %d", uid, version)
	}
}

func connect(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func resources() []schema.GroupVersionResource {
	var found []schema.GroupVersionResource
	for _, k := range kinds() {
		if !slices.Contains(found, k.resource) {
			found = append(found, k.resource)
		}
	}
	return found
}

func figures(events []event) string {
	count := map[string]int{}
	for i := range events {
		op := events[i].op()
		if events[i].FinalStateUnknown {
			op += "(finalstateunknown)"
		}
		count[op]++
	}
	return fmt.Sprintf("%d events %v", len(events), count)
}

// eventually waits for something that another process does.
func eventually(t *testing.T, within time.Duration, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("waited %s until %s", within, what)
		}
	}
}
