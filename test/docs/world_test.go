package docs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubecdc/kubecdc/test/natsserver"
	"github.com/kubecdc/kubecdc/test/program"
)

// limit bounds what another process does, on a busy machine.
const limit = 4 * time.Minute

// world is what a page's commands meet: a real cluster with namespace shop, an exporter that streams it to JetStream
// and to a file, and a directory with its configuration, in which the commands run.
type world struct {
	t          *testing.T // of the block that is played
	world      *testing.T // of the whole page
	dir        string
	kubeconfig string
	client     kubernetes.Interface
	nats       *natsserver.Server
	stream     jetstream.JetStream
	exporter   *program.Exporter // nil where none runs
	audited    string            // where an audit webhook is received
	kafka      string            // address of a broker; "" before there is one
}

const configuration = `cluster: dev
resources:
  - {resource: configmaps, namespaces: [shop]}
  - {resource: deployments.apps, namespaces: [shop]}
sinks:
%s  - {name: bus, nats: {url: "%s", stream: K8S, service: {}}}
  - {name: archive, file: {path: changes.ndjson}}
state: {dir: state}
listen: 127.0.0.1:0
`

func newWorld(t *testing.T) *world {
	t.Helper()
	cluster := shared.Get(t)
	client, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, world: t, dir: t.TempDir(), client: client}
	w.kubeconfig, err = filepath.Abs(cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	w.nats, w.audited = natsserver.Start(t), w.free()
	w.stream = natsserver.Connect(t, w.nats.URL())
	w.furnish()
	w.populate()
	w.start()
	w.put("settings-1", "green")
	w.await("a change is in the file", func() bool { return bytes.Contains(w.read("changes.ndjson"), []byte("dev.kubecdc.updated")) })
	return w
}

// furnish makes the directory look as the project's does, with a configuration beside.
func (w *world) furnish() {
	w.t.Helper()
	w.write("config.yaml", fmt.Sprintf(configuration, "", w.nats.URL()))
	absolute, err := filepath.Abs(root)
	if err != nil {
		w.t.Fatal(err)
	}
	for link, target := range map[string]string{"deploy": filepath.Join(absolute, "deploy"), "bin": filepath.Dir(exporter.Path(w.t))} {
		if err := os.Symlink(target, w.path(link)); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) populate() {
	w.t.Helper()
	_, err := w.client.CoreV1().Namespaces().Create(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		w.t.Fatal(err)
	}
	// Another page's world may have left it.
	if err := w.client.CoreV1().ConfigMaps("shop").Delete(w.t.Context(), "dump", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
	for _, name := range []string{"settings-1", "settings-2", "settings-3"} {
		w.put(name, "blue")
	}
	labels := map[string]string{"app": "web"}
	_, err = w.client.AppsV1().Deployments("shop").Create(w.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
		}},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		w.t.Fatal(err)
	}
}

// put makes or changes a config map.
func (w *world) put(name, value string) {
	w.t.Helper()
	maps := w.client.CoreV1().ConfigMaps("shop")
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"colour": value}}
	_, err := maps.Update(w.t.Context(), object, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(w.t.Context(), object, metav1.CreateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) write(name, content string) {
	w.t.Helper()
	if err := os.WriteFile(w.path(name), []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// read is a file's content, nothing where there is none.
func (w *world) read(name string) []byte {
	text, err := os.ReadFile(w.path(name))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return text
}

// start runs the exporter, unless it runs, and waits until it streams. It ends with the world.
func (w *world) start() {
	w.t.Helper()
	if w.exporter != nil {
		return
	}
	run := exec.Command(exporter.Path(w.t), "run", "-f", "config.yaml", "--kubeconfig", w.kubeconfig)
	run.Dir = w.dir
	w.exporter = program.Start(w.world, run, w.path("state"), w.path("log"))
	w.await("the exporter is ready", w.exporter.Ready)
	w.await("both snapshots are in the file", func() bool { return bytes.Count(w.read("changes.ndjson"), []byte("snapshot.end")) >= 4 })
}

// stop ends the exporter, if it runs, which must have delivered everything.
func (w *world) stop() {
	w.t.Helper()
	if w.exporter == nil {
		return
	}
	w.exporter.Stop(w.t)
	w.exporter = nil
}

// address is the URL at which the exporter listens.
func (w *world) address() string {
	address, _, _ := strings.Cut(string(w.read("state/address")), " ")
	return "http://" + address
}

func (w *world) await(what string, holds func() bool) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.t.Context(), 20*time.Millisecond, limit, true, func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}
