package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubecdc/kubecdc/test/natsserver"
	"github.com/kubecdc/kubecdc/test/testcluster"
)

// trouble is an exporter that may not read one of its resources, and two brokers that it writes to.
type trouble struct {
	t         *testing.T
	client    *kubernetes.Clientset
	dir       string
	bus, lake *natsserver.Server
	kept      jetstream.JetStream // of the bus
}

// newTrouble starts all of it, and returns the address of the page.
func newTrouble(t *testing.T) (x *trouble, url string) {
	cluster := testcluster.New(t, testcluster.Options{})
	client, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	x = &trouble{t: t, client: client, dir: t.TempDir()}
	x.allow("configmaps", "namespaces")
	x.bus, x.lake = natsserver.Start(t), natsserver.Start(t)
	x.kept = natsserver.Connect(t, x.bus.URL())
	path := filepath.Join(x.dir, "config.yaml")
	config := fmt.Sprintf(`cluster: shop-eu1
resources: [{resource: configmaps, namespaces: [default]}, namespaces, secrets]
sinks:
- {name: bus, nats: {url: %q, stream: BUS}}
- {name: lake, nats: {url: %q, stream: LAKE}, queue: {records: 8}}
- {name: audit, file: {path: audit.ndjson}, resources: [namespaces]}
`, x.bus.URL(), x.lake.URL())
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	url, _ = startExporter(t, x.dir, "run", "--kubeconfig", cluster.Kubeconfig(), "--context", testcluster.Limited, "-f", path)
	return x, url
}

// allow lets the exporter read the resources.
func (x *trouble) allow(resources ...string) {
	x.t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reads"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: resources, Verbs: []string{"get", "list", "watch"},
	}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reads"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reads"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: testcluster.Limited}},
	}
	if _, err := x.client.RbacV1().ClusterRoles().Create(x.t.Context(), role, metav1.CreateOptions{}); err != nil {
		x.t.Fatal(err)
	}
	if _, err := x.client.RbacV1().ClusterRoleBindings().Create(x.t.Context(), binding, metav1.CreateOptions{}); err != nil {
		x.t.Fatal(err)
	}
}

// limit sets the largest message that the bus takes; -1 is any.
func (x *trouble) limit(bytes int32) {
	x.t.Helper()
	stream, err := x.kept.Stream(x.t.Context(), "BUS")
	if err != nil {
		x.t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.MaxMsgSize = bytes
	if _, err := x.kept.UpdateStream(x.t.Context(), config); err != nil {
		x.t.Fatal(err)
	}
}

func (x *trouble) make(name string, size int) {
	x.t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"key": strings.Repeat("x", size)}}
	if _, err := x.client.CoreV1().ConfigMaps("default").Create(x.t.Context(), object, metav1.CreateOptions{}); err != nil {
		x.t.Fatal(err)
	}
}

// replay sends the letters again.
func (x *trouble) replay() {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, exporter.Path(x.t), "deadletter", "replay", "--state-dir", filepath.Join(x.dir, "state"))
	if output, err := cmd.CombinedOutput(); err != nil {
		x.t.Fatalf("replay: %v\n%s", err, output)
	}
}

// TestThePageOfAnExporterInTrouble: it names the sink that fails and what that holds up, the resource that may not be
// read, and which rejected record was sent again.
func TestThePageOfAnExporterInTrouble(t *testing.T) {
	Require(t)
	x, url := newTrouble(t)
	b := newTab(t)
	b.do(chromedp.EmulateViewport(1200, 900), chromedp.Navigate(url))
	b.await(`document.body.innerText.includes("forbidden")`)
	x.make("settings", 10)
	b.await(`document.querySelector("#changeRows").innerText.includes("default/settings")`)

	x.limit(4 << 10)
	x.make("price-list", 16<<10)
	b.await(`document.querySelector("#sinkCards").innerText.includes("default/price-list: too_large")`)
	x.limit(-1)
	x.replay()
	b.await(`[...document.querySelectorAll("#sinkCards .gaps li.resolved")].some((e) => e.innerText.includes("sent again"))`)
	x.limit(4 << 10)
	x.make("catalogue", 16<<10)
	b.await(`document.querySelector("#sinkCards").innerText.includes("default/catalogue: too_large")`)

	x.lake.Stop()
	for i := range 40 {
		x.make(fmt.Sprint("cart-", i), 10)
	}
	b.await(`document.querySelector("#streamRows").innerText.includes("held up by lake")`)
	b.await(`document.getElementById("health").textContent.includes("sink fails")`)
	// The queue is full, and a batch of one to eight records is on its way besides.
	b.await(`/\D(9|1[0-6]) of 8 records/.test(document.querySelector("#sinkCards .card:nth-child(3) .bar:nth-of-type(2)")?.textContent)`)
	for selector, want := range map[string]string{
		"#streamRows tr:nth-child(1) .pill": "held up",
		"#streamRows tr:nth-child(3) small": "secrets is forbidden", "#gaps": "2",
	} {
		if text := ask[string](b, fmt.Sprintf("document.querySelector(%q)?.textContent ?? 'nothing'", selector)); !strings.Contains(text, want) {
			t.Errorf("%s says %q, want %q in it", selector, text, want)
		}
	}
	if full := ask[int64](b, `document.querySelectorAll("#sinkCards .card:nth-child(3) .track .full").length`); full != 1 {
		t.Error("the bar of the full queue is not full")
	}
	for _, look := range []struct {
		scheme string
		width  int64
	}{{"light", 1200}, {"dark", 1200}, {"light", 400}, {"dark", 400}} {
		b.do(media("prefers-color-scheme", look.scheme), chromedp.EmulateViewport(look.width, 1000))
		b.await(`document.querySelector("#line").getAttribute("points").split(" ").length > 3`)
		if wide := ask[int64](b, "document.documentElement.scrollWidth"); wide > look.width {
			t.Errorf("%s at %d: the page is %d wide", look.scheme, look.width, wide)
		}
		b.picture(fmt.Sprintf("trouble-%s-%d.png", look.scheme, look.width))
		b.view(fmt.Sprintf("screen-%s-%d.png", look.scheme, look.width)) // docs have two of them
	}
}
