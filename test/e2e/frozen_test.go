package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// noticeLimit is how long a connection may stand still that a stream is read over. What is above a minute is for the
// machine, which other tests use.
const noticeLimit = 75 * time.Second

// TestI4AFrozenBalancerIsNoticedWithinAMinute: connections to the API server stay open, and nothing comes, as behind a
// balancer that has forgotten them. New ones work. What changes then arrives, whatever the protocol, and without a gap.
func TestI4AFrozenBalancerIsNoticedWithinAMinute(t *testing.T) {
	r := newWorld(t, world{})
	t.Parallel()
	target := strings.TrimPrefix(r.cluster.RESTConfig().Host, "https://")
	type reader struct {
		*exporter
		name    string
		env     []string
		network *proxy
		file    *follower
		after   time.Duration // the freeze it was told of the change; 0 is not yet
	}
	readers := []*reader{{name: "few"}, {name: "many"}, {name: "old", env: []string{"DISABLE_HTTP2=1"}}}
	for _, x := range readers {
		x.exporter, x.network = r.newExporter(x.name), newProxy(t, target)
		own := kubeconfigTo(t, "https://"+x.network.address(), r.cluster.Kubeconfig(), filepath.Join(r.dir, x.name+".kubeconfig"))
		path := filepath.Join(r.dir, x.name+".ndjson")
		for i, arg := range x.args {
			switch {
			case arg == r.cluster.Kubeconfig():
				x.args[i] = own
			case x.args[max(0, i-1)] == "--resources" && x.name != "few":
				x.args[i] = "*"
			}
		}
		x.file, x.sinks = followFile(path), []string{"file://" + path}
		x.process = startProcess(t, x.logPath, x.env, x.binary, append(x.args, "--sink", x.sinks[0])...)
	}
	make := func(name string) string {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
		made, err := r.client.Resource(core("configmaps")).Namespace("default").Create(t.Context(), object, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return string(made.GetUID())
	}
	before := make("before")
	for _, x := range readers {
		x.file.await(t, x.exporter, "the object from before", func(e *event) bool { return e.UID == before })
		eventually(t, deliveryLimit, "all streams are watched", func() bool {
			return !strings.Contains(x.get(t, "/metrics"), `state="starting"} 1`) && !strings.Contains(x.get(t, "/metrics"), `state="snapshot"} 1`)
		})
		x.network.freeze()
	}
	frozen, uid := time.Now(), make("after")
	eventually(t, 2*noticeLimit, "all exporters tell of the change", func() bool {
		told := 0
		for _, x := range readers {
			for _, e := range x.file.all(t) {
				if e.UID == uid && x.after == 0 {
					x.after = time.Since(frozen)
				}
			}
			if x.after > 0 {
				told++
			}
		}
		if time.Since(frozen) > 2*noticeLimit-5*time.Second {
			for _, x := range readers {
				t.Logf("%s: %s\n%s", x.name, x.after, x.lastLines(t))
			}
		}
		return told == len(readers)
	})
	for _, x := range readers {
		if t.Logf("%s: %s", x.name, x.after.Round(time.Second)); x.after > noticeLimit {
			t.Errorf("%s is told of the change after %s, want %s:\n%s", x.name, x.after, noticeLimit, x.lastLines(t))
		}
		for series := range strings.Lines(withoutCluster(x.get(t, "/metrics"))) {
			if strings.HasPrefix(series, "kubecdc_source_gaps_total") {
				t.Error(x.name, fmt.Sprint(series))
			}
		}
		if log := x.log(t); x.name != "many" && !strings.Contains(log, "has sent nothing") {
			t.Errorf("%s: the log does not say that the API server stands still:\n%s", x.name, x.lastLines(t))
		}
		x.process.Kill()
	}
}
