package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestI4AnEtcdThatWasRestoredIsAnEpoch, while it is behind what was delivered, and when it has overtaken that.
func TestI4AnEtcdThatWasRestoredIsAnEpoch(t *testing.T) {
	r := newRig(t)
	r.writer.populate(t)
	for _, overtaken := range []bool{false, true} {
		past := r.backUp()
		r.exporter.start(t)
		r.streaming()
		r.writer.change(t, 10)
		r.writer.disturb(t)
		r.streaming()
		if overtaken {
			version := r.version()
			r.exporter.signal(t, syscall.SIGSTOP)
			r.restore(past)
			r.overtake(version)
			r.writer.disturb(t)
			r.exporter.signal(t, syscall.SIGCONT)
		} else {
			r.restore(past)
		}
		r.await(r.writer.finish(t)...)
		r.expectEpochs()
		r.exporter.stop(t) // another life waits less after a failure
	}
	r.judge(true)
}

// TestI4AnotherClusterIsAnEpoch: a cluster that was made anew behind the same address, while the exporter runs and
// while it does not.
func TestI4AnotherClusterIsAnEpoch(t *testing.T) {
	r := newRig(t)
	for _, runs := range []bool{true, false} {
		r.writer.populate(t)
		if !r.exporter.runs() {
			r.exporter.start(t)
		}
		r.streaming()
		if !runs {
			r.exporter.stop(t)
		}
		r.replaceCluster()
		if !runs {
			r.exporter.start(t)
		}
		r.await(r.writer.finish(t)...)
		r.expectEpochs()
	}
	r.writer.populate(t)
	r.await(r.writer.finish(t)...)
	r.exporter.stop(t)
	r.judge(true)
}

// TestI4AResyncCorrectsAHistoryThatLooksTheSame: of an etcd that was restored and has overtaken the position while the
// exporter did not run, nothing tells but a comparison of everything.
func TestI4AResyncCorrectsAHistoryThatLooksTheSame(t *testing.T) {
	r := newRigOf(t, world{resync: time.Minute})
	r.writer.populate(t)
	past := r.backUp()
	r.exporter.start(t)
	r.writer.disturb(t)
	r.streaming()
	r.exporter.stop(t)
	version := r.version()
	r.restore(past)
	r.overtake(version)
	before := len(r.exporter.log(t))
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	eventually(t, deliveryLimit, "the sinks have what the API server has", func() bool {
		return r.differences(r.stream) == "" && r.differences(r.file) == ""
	})
	if log := r.exporter.log(t)[before:]; !strings.Contains(log, "drift: the server has a change that no watch reported") {
		t.Errorf("no resync corrected anything:\n%s", log)
	}
	corrections := 0.0
	for _, op := range []string{"replaced", "deleted"} {
		corrections += r.exporter.metric(t, `kubecdc_corrections_total{op="`+op+`",resource="configmaps"}`)
	}
	if corrections == 0 {
		t.Error("no correction of configmaps is counted")
	}
	r.exporter.stop(t)
}

// differences is what a consumer of the sink believes and is not so.
func (r *rig) differences(sink *follower) string {
	r.t.Helper()
	j := newJudge("restored", nil, true)
	for _, e := range sink.all(r.t) {
		j.note(&e)
	}
	r.compareState(j)
	return strings.Join(j.faults, "\n")
}

// past is a state of the world that it can be taken back to.
type past struct {
	etcd   string // a copy of its directory
	ledger *ledger
}

// backUp copies etcd's data, for which it is stopped.
func (r *rig) backUp() past {
	r.t.Helper()
	p := past{etcd: filepath.Join(r.dir, fmt.Sprintf("backup-%d", len(r.earlier))), ledger: r.ledger.clone()}
	r.offline(func() error { return os.CopyFS(p.etcd, os.DirFS(r.etcd())) })
	return p
}

// restore takes the API server back. What was written since is no longer true.
func (r *rig) restore(p past) {
	r.t.Helper()
	r.offline(func() error {
		if err := os.RemoveAll(r.etcd()); err != nil {
			return err
		}
		return os.CopyFS(r.etcd(), os.DirFS(p.etcd))
	})
	r.beginHistory(p.ledger.clone())
	r.writer.adopt(r.t)
}

// replaceCluster puts a cluster that knows nothing in the place of this one, with the same address and credentials. An
// exporter that runs stands still until widgets are defined there: they would be gone otherwise, as any resource whose
// definition is (TestI4AnotherClusterBehindAWildcard).
func (r *rig) replaceCluster() {
	r.t.Helper()
	runs := r.exporter.runs()
	r.offline(func() error {
		if runs {
			r.exporter.signal(r.t, syscall.SIGSTOP)
		}
		return os.RemoveAll(r.etcd())
	})
	r.beginHistory(newLedger())
	r.prepare(r.ledger, r.ledger.created)
	if runs {
		r.exporter.signal(r.t, syscall.SIGCONT)
	}
}

func (r *rig) beginHistory(ledger *ledger) {
	r.earlier = append(r.earlier, r.ledger)
	r.ledger = ledger
	r.writer = newWriter(r.world.kinds, r.client, ledger, seed(r.t)+uint64(len(r.earlier)))
}

// etcd is its directory.
func (r *rig) etcd() string { return filepath.Join(r.cluster.DataDir(), "etcd") }

// overtake lets the API server pass the version, by changes that nobody streams.
func (r *rig) overtake(version string) {
	r.t.Helper()
	for i := 0; parseVersion(r.version()) <= parseVersion(version); i++ {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, markAnnotation, i)
		if _, err := r.client.Resource(core("namespaces")).Patch(r.t.Context(), namespaces[0], types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// offline does something while neither API server nor etcd runs.
func (r *rig) offline(do func() error) {
	r.t.Helper()
	r.cluster.KillAPIServer()
	r.cluster.KillEtcd()
	if err := do(); err != nil {
		r.t.Fatal(err)
	}
	if err := r.cluster.StartEtcd(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	if err := r.cluster.StartAPIServer(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// expectEpochs wants the last gap of each resource in both sinks to say that the history is another one.
func (r *rig) expectEpochs() {
	r.t.Helper()
	for _, sink := range r.sinks() {
		last := map[string]string{}
		for _, e := range sink.all(r.t) {
			if e.op() == "gap" {
				last[e.kind()] = e.Reason
			}
		}
		for _, resource := range r.resources() {
			if name := kubectlName(resource); last[name] != "epoch" {
				r.t.Errorf("the last gap of %s has the reason %q, want epoch", name, last[name])
			}
		}
	}
}
