package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/test/program"
)

// previousExporter is the binary of the commit before this one.
func previousExporter(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	shell := "set -e; cd ../..; git archive HEAD~1 cmd internal go.mod go.sum | tar -x -C " + dir
	if output, err := exec.CommandContext(t.Context(), "sh", "-c", shell).CombinedOutput(); err != nil {
		t.Skipf("there is no commit before this one to upgrade from: %s", output)
	}
	binary := filepath.Join(dir, "exporter")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/exporter")
	build.Dir = dir
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the exporter of the commit before: %v\n%s", err, output)
	}
	return binary
}

// TestI4AnUpgradeAndARollbackContinueWithTheState of the commit before: nothing is lost, sent twice or listed again. An
// older exporter that cannot read the newer state says so, and changes nothing.
func TestI4AnUpgradeAndARollbackContinueWithTheState(t *testing.T) {
	previous := previousExporter(t)
	r := newRig(t)
	r.summon()
	r.writer.populate(t)
	now := r.exporter.binary
	for i, binary := range []string{previous, now, previous, now} {
		r.exporter.binary = binary
		before := len(r.exporter.log(t))
		if i == 2 && !r.takesTheState(previous) {
			continue
		}
		if i > 0 {
			r.writer.change(t, 20)
		}
		r.exporter.start(t)
		r.await(r.writer.finish(t)...)
		r.exporter.stop(t)
		if log := r.exporter.log(t)[before:]; i > 0 && compares(log) {
			t.Errorf("life %d was no resume:\n%s", i+1, log)
		}
	}
	r.judge(false)
}

// takesTheState says whether the older exporter can go on with a newer one's state. If not, it must say why.
func (r *rig) takesTheState(older string) bool {
	r.t.Helper()
	o := program.Run(r.t, deliveryLimit, exec.CommandContext(r.t.Context(), older, "checkpoint", "show", "--state-dir", filepath.Join(r.dir, "state")))
	if o.Code == 0 {
		return true
	}
	if want := "written by a newer version of exporter"; !strings.Contains(o.Stderr, want) {
		r.t.Errorf("the older exporter refuses the state without %q: %+v", want, o)
	}
	r.t.Logf("no rollback: %s", o.Stderr)
	return false
}
