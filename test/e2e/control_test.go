package e2e

import (
	"encoding/json"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubecdc/kubecdc/test/program"
)

// run runs one of the exporter's commands on the state directory, to its end.
func (r *rig) run(args ...string) program.Outcome {
	r.t.Helper()
	args = append(args, "--state-dir", filepath.Join(r.dir, "state"))
	return program.Run(r.t, deliveryLimit, exec.CommandContext(r.t.Context(), r.exporter.binary, args...))
}

// command is run of a command that must end well, and returns what it prints.
func (r *rig) command(args ...string) string {
	r.t.Helper()
	o := r.run(args...)
	if o.Code != 0 {
		r.t.Fatalf("exporter %s ends with %d: %s\n%s", strings.Join(args, " "), o.Code, o.Stderr, r.exporter.lastLines(r.t))
	}
	return o.Stdout
}

// decoded are the documents that stand one after the other.
func decoded[T any](t *testing.T, text string) (all []T) {
	t.Helper()
	for decoder := json.NewDecoder(strings.NewReader(text)); decoder.More(); {
		var one T
		if err := decoder.Decode(&one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// TestI4ARequestedSnapshotIsWholeThoughTheExporterIsKilled: from the moment that the command says so, it is owed.
func TestI4ARequestedSnapshotIsWholeThoughTheExporterIsKilled(t *testing.T) {
	r := newRig(t)
	r.summon()
	r.writer.populate(t)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	r.command("snapshot")
	r.exporter.process.Kill()
	r.writer.disturb(t)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...) // which also says that it streams
	r.command("snapshot", "--wait")
	before := map[*follower]map[string]int{}
	for _, sink := range r.sinks() {
		before[sink] = requested(sink.all(t))
	}
	if err := r.exporter.process.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for _, resource := range r.resources() {
		kind := kubectlName(resource)
		for _, sink := range r.sinks() {
			if before[sink][kind] == 0 {
				t.Errorf("%s was waited for, and is not in a sink", kind)
			}
			eventually(t, deliveryLimit, "the snapshot of "+kind+" that SIGHUP asked for is in the sink", func() bool {
				return requested(sink.all(t))[kind] > before[sink][kind]
			})
		}
	}
	eventually(t, deliveryLimit, "the inventory is the cluster", func() bool { return r.inventory() == r.listed() })
	r.exporter.stop(t)
	if got, want := r.inventory(), r.listed(); got != want {
		t.Errorf("the inventory has\n%s\nthe cluster has\n%s", got, want)
	}
	r.judge(false)
}

// requested is how many requested snapshots of each resource are complete.
func requested(events []event) map[string]int {
	complete := map[string]int{}
	for i := range events {
		if e := &events[i]; e.op() == "snapshot.end" && e.Reason == "requested" {
			complete[e.kind()]++
		}
	}
	return complete
}

// inventory is a line for each object, sorted by resource and key.
func (r *rig) inventory() (lines string) {
	r.t.Helper()
	type object struct{ Stream, Namespace, Name, UID, ResourceVersion string }
	for _, o := range decoded[object](r.t, r.command("inventory", "list", "-o", "json")) {
		lines += strings.Join([]string{o.Stream, joined(o.Namespace, o.Name), o.UID, o.ResourceVersion}, " ") + "\n"
	}
	return lines
}

// listed is the same of the API server.
func (r *rig) listed() string {
	r.t.Helper()
	byKind := map[string]string{}
	for _, resource := range r.resources() {
		kind := kubectlName(resource)
		r.eachListed(resource, func(o *unstructured.Unstructured) {
			byKind[kind] += strings.Join([]string{kind, joined(o.GetNamespace(), o.GetName()), string(o.GetUID()), o.GetResourceVersion()}, " ") + "\n"
		})
	}
	var lines strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		lines.WriteString(byKind[kind])
	}
	return lines.String()
}
