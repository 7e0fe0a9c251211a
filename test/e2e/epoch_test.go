package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

func TestI4AnEtcdThatWasRestoredIsAnEpoch(t *testing.T) {
	r := newRig(t, nil)
	r.writer.populate(t)
	data := filepath.Join(r.cluster.DataDir(), "etcd")
	backup := filepath.Join(r.dir, "backup")
	r.offline(func() error { return os.CopyFS(backup, os.DirFS(data)) })
	r.exporter.start(t)
	r.writer.change(t, 30)
	r.await(r.writer.finish(t)...)
	r.offline(func() error {
		if err := os.RemoveAll(data); err != nil {
			return err
		}
		return os.CopyFS(data, os.DirFS(backup))
	})
	// What the writer knows is no longer true, and another one begins.
	r.await(newWriter(r.client, newLedger(), seed(t)+1).finish(t)...)
	r.exporter.stop(t)
	for _, sink := range []*follower{r.stream, r.file} {
		expectEpochs(t, sink.all(t))
		j := newJudge("restored", nil, true)
		for i := range sink.events {
			j.note(&sink.events[i])
		}
		r.compareState(j)
		j.verdict(t)
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

// expectEpochs wants the last gap of each resource to say that the server's versions went back.
func expectEpochs(t *testing.T, events []event) {
	t.Helper()
	last := map[string]string{}
	for i := range events {
		if events[i].op() == "gap" {
			last[events[i].kind()] = events[i].Reason
		}
	}
	for _, resource := range resources() {
		if name := kubectlName(resource); last[name] != "epoch" {
			t.Errorf("the last gap of %s has the reason %q, want epoch", name, last[name])
		}
	}
}
