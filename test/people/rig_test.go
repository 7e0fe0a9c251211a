package people

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/natsserver"
	"github.com/kubecdc/kubecdc/test/program"
)

// limit bounds what another process does, on a busy machine.
const limit = 2 * time.Minute

// rig is a namespace of a real cluster, three brokers' worth of sinks and an exporter's configuration. The cluster's
// name in events is the namespace, so topics and subjects are the test's own.
type rig struct {
	t         *testing.T
	dir       string
	namespace string
	client    kubernetes.Interface
	nats      string // URL
	kafka     *kafka.Cluster
	exporter  *program.Exporter
}

// newRig makes everything but the configuration.
func newRig(t *testing.T, namespace string) *rig {
	t.Helper()
	cluster := shared.Get(t)
	client, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, dir: t.TempDir(), namespace: namespace, client: client}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := os.ReadFile(cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	r.write("kubeconfig", string(kubeconfig))
	return r
}

func (r *rig) startNATS() {
	r.t.Helper()
	r.nats = natsserver.Start(r.t).URL()
}

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

func (r *rig) write(name, content string) {
	r.t.Helper()
	if err := os.WriteFile(r.path(name), []byte(content), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// configure writes config.yaml: what is under resources and sinks, and the rest.
func (r *rig) configure(name, resources, sinks string) {
	r.t.Helper()
	r.write(name, fmt.Sprintf("cluster: %s\nresources:\n%s\nsinks:\n%s\nstate: {dir: %q}\nlisten: 127.0.0.1:0\n", r.namespace, resources, sinks, r.path("state")))
}

// resource is an entry of the configuration with the rig's namespace.
func (r *rig) resource(name, more string) string {
	return fmt.Sprintf("  - {resource: %s, namespaces: [%s]%s}", name, r.namespace, more)
}

// start runs the exporter, which ends with the test.
func (r *rig) start(more ...string) {
	r.t.Helper()
	r.launch(more...)
	eventually(r.t, "the exporter is ready", r.exporter.Ready)
}

// launch runs the exporter, ready or not.
func (r *rig) launch(more ...string) {
	r.t.Helper()
	args := append([]string{"run", "-f", r.path("config.yaml"), "--kubeconfig", shared.Get(r.t).Kubeconfig()}, more...)
	r.exporter = program.Start(r.t, exec.Command(exporter.Path(r.t), args...), r.path("state"), r.path("log"))
}

// stop ends the exporter, which must have delivered everything.
func (r *rig) stop() { r.exporter.Stop(r.t) }

// outcome is what a command said.
type outcome struct{ program.Outcome }

func (r *rig) run(args ...string) outcome {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), exporter.Path(r.t), args...)
	cmd.Env = []string{"HOME=" + r.dir, "PATH=/usr/bin:/bin", "KUBECONFIG=" + r.path("kubeconfig")}
	return outcome{program.Run(r.t, limit, cmd)}
}

// put makes or changes a config map.
func (r *rig) put(name, value string) {
	r.t.Helper()
	maps := r.client.CoreV1().ConfigMaps(r.namespace)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"key": value}}
	_, err := maps.Update(r.t.Context(), object, metav1.UpdateOptions{})
	if err != nil {
		_, err = maps.Create(r.t.Context(), object, metav1.CreateOptions{})
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) remove(name string) {
	r.t.Helper()
	if err := r.client.CoreV1().ConfigMaps(r.namespace).Delete(r.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

// eventually waits for something that another process does.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	program.Eventually(t, limit, what, holds)
}
