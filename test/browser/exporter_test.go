package browser

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubecdc/kubecdc/test/program"
	"github.com/kubecdc/kubecdc/test/testcluster"
)

var exporter program.Build

func TestMain(m *testing.M) {
	testcluster.HearHangups()
	code := m.Run()
	exporter.Remove()
	os.Exit(code)
}

// startExporter runs the program in the directory, with its state there, and returns the address of its page.
func startExporter(t *testing.T, dir string, args ...string) (url string, stop func()) {
	t.Helper()
	state := filepath.Join(dir, "state")
	cmd := exec.Command(exporter.Path(t), append(args, "--state-dir", state, "--listen", "127.0.0.1:0")...)
	cmd.Dir = dir
	x := program.Start(t, cmd, state, filepath.Join(dir, "log"))
	t.Cleanup(x.Kill) // one in trouble cannot deliver what it has
	program.Eventually(t, limit, "the exporter listens", func() bool { return x.Address() != "" })
	return "http://" + x.Address(), func() { x.Stop(t) }
}

// TestThePageOfARunningExporter: a change comes as it is made, and the end of the exporter is told.
func TestThePageOfARunningExporter(t *testing.T) {
	Require(t)
	cluster := testcluster.New(t, testcluster.Options{})
	client, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	url, stop := startExporter(t, dir, "run", "--kubeconfig", cluster.Kubeconfig(), "--cluster", "seen", "--resources", "configmaps",
		"--sink", "file://"+filepath.Join(dir, "out.ndjson"))
	b := newTab(t)
	b.do(chromedp.Navigate(url))
	b.await(`document.getElementById("health").textContent === "delivering" && document.title === "seen – kubecdc exporter"`)
	b.await(`document.querySelector("#streamRows th .name")?.textContent === "configmaps" && document.querySelector("#sinkCards h3") !== null`)
	for i := range 3 {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("shown-", i)}, Data: map[string]string{"key": "a-body-that-stays"}}
		if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	b.await(`document.querySelector("#changeRows tr td:last-child")?.textContent === "default/shown-2" && document.querySelector("#changeRows .op").textContent === "added"`)
	if body := ask[string](b, "document.documentElement.outerHTML"); strings.Contains(body, "a-body-that-stays") {
		t.Error("an object's body is on the page")
	}
	b.picture("exporter.png")
	stop()
	b.await(`document.getElementById("health").textContent === "no connection"`)
	b.forgive("net::ERR_")
}
