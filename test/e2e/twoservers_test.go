package e2e

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubecdc/kubecdc/test/testcluster"
)

// twoServers is a control plane of two API servers on one etcd, which the exporter reaches through a balancer. The
// second one's way to etcd may be slow. Where KUBECDC_KUBERNETES is set, they are of two versions.
type twoServers struct {
	*rig
	second   *testcluster.Cluster
	wire     *proxy // of the second one to etcd
	balancer *proxy
}

// newTwoServers gives the rig a second server with the flags, and leads its exporter through the balancer.
func newTwoServers(r *rig, flags ...string) *twoServers {
	r.t.Helper()
	port, err := r.cluster.EtcdPort()
	if err != nil {
		r.t.Fatal(err)
	}
	two := &twoServers{rig: r, wire: newProxy(r.t, fmt.Sprint("127.0.0.1:", port))}
	two.second = testcluster.NewNeighbour(r.t, r.cluster, two.wire.listener.Addr().(*net.TCPAddr).Port, flags...)
	var addresses []string
	for _, cluster := range []*testcluster.Cluster{r.cluster, two.second} {
		address, err := cluster.APIServerAddress()
		if err != nil {
			r.t.Fatal(err)
		}
		addresses = append(addresses, address)
	}
	two.balancer = newProxyAt(r.t, "127.0.0.1:0", addresses...)
	through := kubeconfigTo(r.t, "https://"+two.balancer.address(), r.cluster.Kubeconfig(), filepath.Join(r.dir, "balanced"))
	r.exporter.args[slices.Index(r.exporter.args, "--kubeconfig")+1] = through
	// On one machine both servers have one identity.
	leases := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	lease := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
		"metadata": map[string]any{
			"name": "apiserver-second", "labels": map[string]any{"apiserver.kubernetes.io/identity": "kube-apiserver"},
		},
		"spec": map[string]any{
			"holderIdentity": "second", "leaseDurationSeconds": int64(3600), "renewTime": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"),
		},
	}}
	if _, err := r.client.Resource(leases).Namespace(metav1.NamespaceSystem).Create(r.t.Context(), lease, metav1.CreateOptions{}); err != nil {
		r.t.Fatal(err)
	}
	return two
}

// restart kills the second server and returns when it serves again, and has forgotten everything. Then the balancer
// cuts all connections, and half of the new ones lead there.
func (two *twoServers) restart() {
	two.t.Helper()
	late := two.wire.late.Swap(0)
	two.second.KillAPIServer()
	if err := two.second.StartAPIServer(two.t.Context()); err != nil {
		two.t.Fatal(err)
	}
	two.wire.late.Store(late)
	two.balancer.reset()
}

// TestI4OneOfTwoServersIsRestarted: the other one remembers, so there is no gap. That the restarted one is some seconds
// behind etcd, and that the balancer cuts connections, changes nothing: each change arrives once.
func TestI4OneOfTwoServersIsRestarted(t *testing.T) {
	r := newRig(t, nil)
	two := newTwoServers(r)
	r.summon()
	r.writer.populate(t)
	r.exporter.start(t)
	r.streaming()
	r.writer.start(t)
	two.wire.late.Store(int64(3 * time.Second))
	for range restarts(t, 2, 1) {
		two.restart()
		for range 2 {
			r.file.awaitMore(t, r.exporter, len(r.file.all(t))+100)
			two.balancer.reset()
		}
	}
	two.wire.late.Store(0)
	r.settle()
	r.exporter.stop(t)
	r.judge(false)
}
