package badinput

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// started is an exporter that has a state and watches.
func (d *desk) started(args ...string) *running {
	d.t.Helper()
	r := d.start(usual(append([]string{"--resources", "configmaps", "--log-level", "info"}, args...)...)...)
	r.logs("msg=watching streams=1 of=1")
	return r
}

// begun starts an exporter that has no state, and returns after its first snapshot.
func (d *desk) begun(args ...string) *running {
	d.t.Helper()
	r := d.started(args...)
	r.logs("msg=\"snapshot complete\" resource=configmaps reason=initial")
	return r
}

// withState is a desk on which an exporter ran before.
func withState(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t)
	if r := d.begun("--sink", "-"); r.stop() != 0 {
		t.Fatalf("the exporter that makes the state failed:\n%s", r.out)
	}
	return d
}

// again are flags of a run on the state.
func again(args ...string) []string {
	return usual(append([]string{"--resources", "configmaps", "--sink", "-"}, args...)...)
}

func TestI10StateInUse(t *testing.T) {
	d := newDesk(t)
	r := d.begun("--sink", "-")
	want := fmt.Sprintf("open state state: in use by process %d: stop it, or give this exporter a state.dir and sinks of its own", r.cmd.Process.Pid)
	d.exporter(again()...).fails(t, 1, want)
	eventually(t, "the running exporter's state, with its stream", func() bool {
		show := d.exporter("checkpoint", "show", "--state-dir", "state")
		return show.Code == 0 && strings.Contains(show.Stdout, "configmaps")
	})
	for _, line := range []string{"set --stream configmaps --resource-version 1", "reset --yes"} {
		t.Run(line, func(t *testing.T) {
			d.exporter(words("checkpoint --state-dir state "+line)...).fails(t, 1, want+" (exporter checkpoint show also shows a running exporter's state)")
		})
	}
	r.stopsWell()
}

func TestStateOfAnotherCluster(t *testing.T) {
	d := withState(t)
	uid := d.clusterUID()
	d.exporter(again("--cluster", "prod")...).fails(t, 2,
		`state state belongs to cluster "dev" (uid `+uid+`), not to "prod" (uid `+uid+`): choose another state.dir, or reset it with: exporter checkpoint reset --state-dir state`)
}

func (d *desk) clusterUID() string {
	d.t.Helper()
	namespace, err := admin(d.t).CoreV1().Namespaces().Get(d.t.Context(), "kube-system", getOptions)
	if err != nil {
		d.t.Fatal(err)
	}
	return string(namespace.UID)
}

func TestStateOfANewerVersion(t *testing.T) {
	d := withState(t)
	db, err := pebble.Open(d.path("state"), &pebble.Options{Logger: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Set([]byte{1}, []byte("7"), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	const want = "open state state: written by a newer version of exporter (format 7, this one knows 2): use that version, or another state.dir"
	d.exporter(again()...).fails(t, 2, want)
	d.exporter("checkpoint", "show", "--state-dir", "state").fails(t, 2, want)
	d.exporter("checkpoint", "set", "--state-dir", "state", "--stream", "configmaps", "--resource-version", "1").fails(t, 2, want)
	d.resets()
}

// quiet keeps the database's diary out of the test's output.
type quiet struct{}

func (quiet) Infof(string, ...any)              {}
func (quiet) Errorf(string, ...any)             {}
func (quiet) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// TestDamagedState can be given up, and is never taken for an empty one.
func TestDamagedState(t *testing.T) {
	d := withState(t)
	markers, err := filepath.Glob(d.path("state/marker.manifest*"))
	if err != nil || len(markers) == 0 {
		t.Fatalf("no marker of the manifest: %v", err)
	}
	for _, marker := range markers {
		if err := os.Remove(marker); err != nil {
			t.Fatal(err)
		}
	}
	const want = "open state state: damaged: the marker file of the manifest is missing: restore the directory from a copy, or give it up with: exporter checkpoint reset --state-dir state"
	d.exporter(again()...).fails(t, 1, want)
	d.exporter("checkpoint", "show", "--state-dir", "state").fails(t, 1, want)
	d.exporter("checkpoint", "set", "--state-dir", "state", "--stream", "configmaps", "--resource-version", "1").fails(t, 1, want)
	d.resets()
}

// resets gives up the state and begins anew.
func (d *desk) resets() {
	d.t.Helper()
	d.exporter("checkpoint", "reset", "--state-dir", "state", "--yes").prints(d.t, 0, "the state in state is removed\n", "")
	if r := d.begun("--sink", "-"); r.stop() != 0 {
		d.t.Errorf("the exporter that began anew did not end well:\n%s", r.out)
	}
}

func TestSetOfAnUnknownStream(t *testing.T) {
	d := withState(t)
	d.exporter("checkpoint", "set", "--state-dir", "state", "--stream", "pods", "--resource-version", "1").fails(t, 2,
		`--stream "pods": the state in state has no such stream: it has configmaps`)
}

func TestStateDirectoryThatCannotBeOne(t *testing.T) {
	d := newDesk(t)
	d.write("file", "")
	d.exporter(again("--state-dir", "file")...).fails(t, 1, "open state file: not a directory: choose another state.dir")
	d.exporter(again("--state-dir", "/proc/state")...).fails(t, 1,
		"make state directory /proc/state: it cannot be created there: choose another with --state-dir, or with state.dir in the configuration")
}

func TestStateDirectoryOfAnotherUser(t *testing.T) {
	d := newDesk(t)
	d.mkdir("state")
	d.exporterAsNobody(again()...).fails(t, 1, fmt.Sprintf("open state state: not writable by user %d: change its owner or mount (in Kubernetes securityContext.fsGroup), or choose another state.dir: open state/LOCK.exporter: permission denied", d.nobody()))
}
