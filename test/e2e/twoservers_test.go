package e2e

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubecdc/kubecdc/test/testcluster"
)

// twoServers is a control plane of two API servers on one etcd, which the exporter reaches through a balancer. The
// second one's way to etcd may be slow. Where KUBECDC_KUBERNETES is set, they are of two versions.
type twoServers struct {
	*rig
	second    *testcluster.Cluster
	wire      *proxy // of the second one to etcd
	balancer  *proxy
	addresses []string // of both
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
	for _, cluster := range []*testcluster.Cluster{r.cluster, two.second} {
		address, err := cluster.APIServerAddress()
		if err != nil {
			r.t.Fatal(err)
		}
		two.addresses = append(two.addresses, address)
	}
	two.balancer = newProxyAt(r.t, "127.0.0.1:0", two.addresses...)
	through := kubeconfigTo(r.t, "https://"+two.balancer.address(), r.cluster.Kubeconfig(), filepath.Join(r.dir, "balanced"))
	r.exporter.args[slices.Index(r.exporter.args, "--kubeconfig")+1] = through
	// On one machine both servers have one identity.
	leases := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	r.create(leases, metav1.NamespaceSystem, map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
		"metadata": map[string]any{
			"name": "apiserver-second", "labels": map[string]any{"apiserver.kubernetes.io/identity": "kube-apiserver"},
		},
		"spec": map[string]any{
			"holderIdentity": "second", "leaseDurationSeconds": int64(3600), "renewTime": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"),
		},
	})
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
// behind etcd, and that the balancer cuts connections, changes nothing: each change arrives once. The first restart is
// while nothing happens: of every resource the restarted server has forgotten the position then.
func TestI4OneOfTwoServersIsRestarted(t *testing.T) {
	r := newRig(t)
	two := newTwoServers(r)
	r.summon()
	r.writer.populate(t)
	r.exporter.start(t)
	r.streaming()
	two.restart()
	r.streaming()
	r.writer.start(t)
	two.wire.late.Store(int64(3 * time.Second))
	for range restarts(t, 1) {
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

// TestI4TwoServersOfOtherResources: what one server does not serve is not gone, and its stream is neither ended nor
// begun anew.
func TestI4TwoServersOfOtherResources(t *testing.T) {
	r := newWildcardRig(t, "resources: ['*']\n", "dev")
	two := newTwoServers(r, "--runtime-config=batch/v1=false")
	jobs := schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	var uids []string
	for i := range 3 {
		uids = append(uids, string(r.create(jobs, "default", map[string]any{
			"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": fmt.Sprint("job-", i)},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"restartPolicy": "Never", "containers": []any{map[string]any{"name": "c", "image": "i"}},
			}}},
		}).GetUID()))
	}
	two.balancer.lead(two.addresses[0]) // the first start finds everything
	r.starts()
	for _, uid := range uids {
		r.arrives(uid, "added", "replaced")
	}
	two.balancer.lead(two.addresses...)
	for over := time.Now().Add(15 * time.Second); time.Now().Before(over); {
		two.balancer.reset()
		r.arrives(r.touched("jobs"), "added") // the streams go on
		select {
		case <-time.After(500 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
	background := metav1.DeletePropagationBackground // else a finalizer waits for a controller that is not there
	if err := r.client.Resource(jobs).Namespace("default").Delete(t.Context(), "job-0", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
	r.arrives(uids[0], "deleted")
	r.exporter.stop(t)
	for _, e := range r.file.all(t) {
		if e.op() == "gap" || e.op() == "deleted" && e.UID != uids[0] {
			t.Errorf("nothing is missing, and no other object was deleted:\n%s", &e)
		}
	}
	for _, uid := range uids[1:] {
		r.once(uid, "replaced")
	}
}

// touched makes a ConfigMap, and returns its uid.
func (r *rig) touched(prefix string) string {
	r.t.Helper()
	object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"generateName": prefix + "-"}}
	return string(r.create(core("configmaps"), "default", object).GetUID())
}
