package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// rig is a world of its own for one test: an API server and its writer, sinks, and an exporter between them that the
// test starts.
type rig struct {
	t        *testing.T
	dir      string
	cluster  *testcluster.Cluster
	client   dynamic.Interface
	broker   *broker  // nil where nothing is written to JetStream
	gateway  *gateway // nil where the exporter reaches the API server directly
	exporter *exporter
	writer   *writer
	world    world
	ledger   *ledger
	earlier  []*ledger // of the histories before the present one, oldest first
	witness  *witness  // nil where the API server is restarted
	began    time.Time

	stream *follower   // in JetStream
	file   *follower   // nil where it is not judged
	topics []*follower // of each sink in Kafka
}

// world is what a rig is made of. The zero value is the one of most tests.
type world struct {
	cluster testcluster.Options
	kinds   []*kind // that the writer changes and the exporter streams; nil is kinds()
	context string  // of the kubeconfig that the exporter uses; "" is the admin's
	gateway bool    // the exporter reaches the API server through a gateway
	// toBroker tells how the exporter reaches the NATS server; nil is directly.
	toBroker func(address string) string
	resync   time.Duration // of the file sink; 0 is never
	// begunAnew is the judge's.
	begunAnew bool
}

// newRig is newRigOf of the world of most tests.
func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigOf(t, world{})
}

// newRigOf starts everything but the exporter, which writes to JetStream and a file. The worlds know nothing of each
// other, and mostly wait, so their tests run in parallel.
func newRigOf(t *testing.T, w world) *rig {
	t.Helper()
	t.Parallel()
	r := newWorld(t, w)
	r.broker = newBroker(t, r.dir)
	r.stream = followStream(r.broker)
	r.exporter = r.newExporter("state")
	address := r.broker.address()
	if w.toBroker != nil {
		address = w.toBroker(address)
	}
	if w.resync == 0 {
		r.exporter.sinks = []string{"nats://" + address + "?stream=" + streamName, "file://" + r.path()}
	} else {
		r.exporter.configure(t, fmt.Sprintf("- nats: {url: %q, stream: %s}\n- file: {path: %q}\n  resync: %s\n", "nats://"+address, streamName, r.path(), w.resync))
	}
	return r
}

// resolves has both sinks say up to where they are complete, which the judge judges.
func (r *rig) resolves() {
	r.t.Helper()
	r.exporter.configure(r.t, fmt.Sprintf("- {nats: {url: %q, stream: %s}, resolved: {every: 1s, digest: true}}\n- {file: {path: %q}, resolved: {every: 1s, digest: true}}\n",
		"nats://"+r.broker.address(), streamName, r.path()))
}

// configured makes the exporter read the text alone, beside what its flags say of the cluster, the state and the port.
func (r *rig) configured(text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, "configured.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if named := slices.Index(r.exporter.args, "--resources"); named >= 0 {
		r.exporter.args = append(slices.Delete(r.exporter.args, named, named+2), "--config", path)
	}
	r.exporter.sinks = nil
}

// newWorld is a rig without sinks and an exporter. Only the file is followed.
func newWorld(t *testing.T, w world) *rig {
	t.Helper()
	if w.kinds == nil {
		w.kinds = kinds()
	}
	w.cluster.SplitProcesses = true
	if w.cluster.CompactionInterval == 0 {
		w.cluster.CompactionInterval = time.Hour // on a busy machine a test takes longer than history usually lasts
	}
	r := &rig{t: t, dir: t.ArtifactDir(), world: w, ledger: newLedger(), began: time.Now()}
	r.cluster = testcluster.New(t, w.cluster)
	config := r.cluster.RESTConfig()
	config.Timeout = 30 * time.Second // of one request of the writer
	r.client = connect(t, config)
	r.prepare(r.ledger, r.ledger.found)
	r.file = followFile(r.path())
	r.writer = newWriter(w.kinds, r.client, r.ledger, seed(t))
	return r
}

// newExporter is an exporter of this API server with a state directory of the name, without a sink, and not started.
func (r *rig) newExporter(state string) *exporter {
	r.t.Helper()
	kubeconfig := r.cluster.Kubeconfig()
	if r.world.gateway {
		r.gateway = newGateway(r.t, r.cluster)
		kubeconfig = r.gateway.kubeconfig(r.t, kubeconfig, r.dir)
	}
	x := &exporter{binary: built.Path(r.t), logPath: filepath.Join(r.dir, state+".log"), listen: fmt.Sprintf("127.0.0.1:%d", freePort(r.t))}
	x.args = []string{
		"run", "--kubeconfig", kubeconfig, "--context", r.world.context, "--resources", strings.Join(r.names(), ","),
		"--state-dir", filepath.Join(r.dir, state), "--listen", x.listen,
	}
	return x
}

// sinks are all that are followed.
func (r *rig) sinks() []*follower {
	all := append([]*follower{r.stream, r.file}, r.topics...)
	return slices.DeleteFunc(all, func(sink *follower) bool { return sink == nil })
}

// path is the file sink's.
func (r *rig) path() string { return filepath.Join(r.dir, "out.ndjson") }

// prepare makes what the writer needs, and notes which cluster this is and what is there before the writer.
func (r *rig) prepare(ledger *ledger, note func(resource string, object *unstructured.Unstructured)) {
	r.t.Helper()
	system, err := r.client.Resource(core("namespaces")).Get(r.t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	ledger.cluster = string(system.GetUID())
	for _, name := range namespaces {
		r.make(core("namespaces"), coreObject("Namespace", name, nil))
	}
	r.defineWidgets()
	if r.world.context == testcluster.Limited {
		r.allowAll()
	}
	for _, resource := range r.resources() {
		r.eachListed(resource, func(object *unstructured.Unstructured) { note(kubectlName(resource), object) })
	}
}

// defineWidgets returns when they are served.
func (r *rig) defineWidgets() {
	r.t.Helper()
	r.make(definitions(), widgetDefinition())
	eventually(r.t, patience, "widgets are served", func() bool {
		_, err := r.client.Resource(widgets()).List(r.t.Context(), metav1.ListOptions{})
		return err == nil
	})
}

func (r *rig) make(resource schema.GroupVersionResource, manifest map[string]any) {
	r.t.Helper()
	_, err := r.client.Resource(resource).Create(r.t.Context(), &unstructured.Unstructured{Object: manifest}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		r.t.Fatal(err)
	}
}

// create makes an object, which it returns.
func (r *rig) create(resource schema.GroupVersionResource, namespace string, manifest map[string]any) *unstructured.Unstructured {
	r.t.Helper()
	made, err := r.client.Resource(resource).Namespace(namespace).Create(r.t.Context(), &unstructured.Unstructured{Object: manifest}, metav1.CreateOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return made
}

// coreObject is one of the core group.
func coreObject(kind, name string, labels map[string]any) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "labels": labels}}
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
	for _, resource := range r.resources() {
		from[resource] = r.eachListed(resource, func(*unstructured.Unstructured) {})
	}
	r.witness = newWitness(r.t, connect(r.t, r.cluster.RESTConfig()), from)
}

// settle stops the writer and returns when all sinks have everything that it wrote.
func (r *rig) settle() {
	r.t.Helper()
	r.writer.stop(r.t)
	r.await(r.writer.finish(r.t)...)
}

// streaming returns when all sinks have everything, and it is the watch that goes on: the first object may be in the
// middle of a snapshot, the second is after it.
func (r *rig) streaming() {
	r.t.Helper()
	r.await(r.writer.finish(r.t)...)
	r.await(r.writer.finish(r.t)...)
}

// await returns when all sinks have the objects of the uids, and so, per resource, everything before them; in Kafka the
// newest records of other partitions may still be on their way. The watch may tell of them beside a snapshot, which has
// ended then, too.
func (r *rig) await(uids ...string) {
	r.t.Helper()
	for _, sink := range r.sinks() {
		sink.awaitObjects(r.t, r.exporter, uids...)
	}
	r.awaitCompared(deliveryLimit)
	if r.witness != nil {
		for _, uid := range uids {
			r.witness.await(r.t, uid)
		}
	}
}

// awaitCompared returns when no snapshot is read, or about to be.
func (r *rig) awaitCompared(within time.Duration) {
	r.t.Helper()
	eventually(r.t, within, "all is compared", func() bool {
		for _, stream := range r.exporter.statuses(r.t).Streams {
			if stream.State == "snapshot" || stream.State == "starting" {
				return false
			}
		}
		return true
	})
}

func connect(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// resources are those of the kinds, each once.
func (r *rig) resources() []schema.GroupVersionResource {
	var found []schema.GroupVersionResource
	for _, k := range r.world.kinds {
		if !slices.Contains(found, k.resource) {
			found = append(found, k.resource)
		}
	}
	return found
}

// names are the resources in kubectl's form.
func (r *rig) names() (names []string) {
	for _, resource := range r.resources() {
		names = append(names, kubectlName(resource))
	}
	return names
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
