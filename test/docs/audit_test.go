package docs

import (
	"bytes"
	"net"
	"os/exec"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/test/program"
	"github.com/kubecdc/kubecdc/test/testcluster"
)

// auditAddress is the page's.
const auditAddress = "127.0.0.1:9443"

// free is an address that nobody listens at.
func (w *world) free() string {
	w.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// audit has users change objects of an API server whose audit goes to an exporter, as the page's files say.
func (w *world) audit() {
	w.t.Helper()
	if len(w.read("pki/apiserver.crt")) == 0 {
		w.t.Skip("no certificates were made: openssl is not here")
	}
	cluster := testcluster.New(w.t, testcluster.Options{APIServerFlags: []string{
		"--audit-policy-file=" + w.path("audit-policy.yaml"), "--audit-webhook-config-file=" + w.path("audit-webhook.yaml"),
		"--audit-webhook-batch-max-wait=100ms",
	}})
	run := exec.Command(exporter.Path(w.t), "run", "-f", "audited.yaml", "--kubeconfig", cluster.Kubeconfig())
	run.Dir = w.dir
	audited := program.Start(w.t, run, w.path("audited"), w.path("audited.log"))
	w.await("the first snapshot is in the trail", func() bool { return bytes.Contains(w.read("trail.ndjson"), []byte("snapshot.end")) })
	w.change(cluster.RESTConfig())
	w.await("all users are in the trail", func() bool { return bytes.Count(w.read("trail.ndjson"), []byte("dev.kubecdc.actor")) >= 4 })
	audited.Stop(w.t)
}

// change has four users create, update, patch and delete an object.
func (w *world) change(access *rest.Config) {
	w.t.Helper()
	ctx, prices := w.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "prices"}, Data: map[string]string{"bread": "3"}}
	as := func(user string) kubernetes.Interface {
		config := rest.CopyConfig(access)
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			w.t.Fatal(err)
		}
		return client
	}
	_, err := as("alice").CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{})
	if err == nil {
		prices, err = as("alice").CoreV1().ConfigMaps("shop").Create(ctx, prices, metav1.CreateOptions{})
	}
	if err == nil {
		prices.Data["bread"] = "4"
		_, err = as("bob").CoreV1().ConfigMaps("shop").Update(ctx, prices, metav1.UpdateOptions{})
	}
	if err == nil {
		_, err = as("carol").CoreV1().ConfigMaps("shop").Patch(ctx, "prices", types.MergePatchType, []byte(`{"data":{"bread":"5"}}`), metav1.PatchOptions{})
	}
	if err == nil {
		err = as("dave").CoreV1().ConfigMaps("shop").Delete(ctx, "prices", metav1.DeleteOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}
