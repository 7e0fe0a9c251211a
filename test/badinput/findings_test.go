package badinput

import (
	"encoding/json"
	"net"
	"strings"
	"testing"
)

func (d *desk) file(name string) string { return "file://" + d.path(name) }

// TestCheckFindsAStateOfAnotherCluster, and the other problems beside it.
func TestCheckFindsAStateOfAnotherCluster(t *testing.T) {
	d := withState(t)
	uid := d.clusterUID()
	d.exporter(checking("--state-dir", "state", "--resources", "configmaps", "--cluster", "prod", "--sink", d.file("nope/out"))...).prints(t, 2, `ok       configuration
ok       cluster prod at `+d.server+`, uid `+uid+`
ok       resource configmaps
problem  state state belongs to cluster "dev" (uid `+uid+`), not to "prod" (uid `+uid+`): choose another state.dir, or reset it with: exporter checkpoint reset --state-dir state
problem  sink file: check file `+d.path("nope/out")+`: no such file or directory: create the directory
`, "exporter: check found 2 problems\n")
	d.exporter(checking("--state-dir", "state", "--resources", "configmaps", "--sink", "-")...).prints(t, 0,
		strings.Replace(d.checkedWell(), newState, "ok       state state of this cluster\n", 1)+"ok       sink stdout\n", "")
}

// TestI10CheckBesideARunningExporter finds nothing wrong in what that exporter has open, and what another process has.
func TestI10CheckBesideARunningExporter(t *testing.T) {
	d := newDesk(t)
	b := startBroker(t)
	address := freeAddress(t)
	sinks := []string{"--listen", address, "--sink", b.URL(), "--sink", d.file("out") + "?name=out"}
	r := d.started(sinks...)
	r.logs("msg=\"sink open\" sink=out")
	r.logs("msg=\"sink open\" sink=nats")
	want := strings.Replace(d.checkedWell(), newState, "ok       state state of this cluster\nnote     state state: an exporter runs with it\n", 1)
	got := d.exporter(append(checking(sinks...), "--resources", "configmaps", "--state-dir", "state")...)
	if got.Code != 0 || !strings.HasPrefix(got.Stdout, want) || !strings.Contains(got.Stdout, "note     sink out: the running exporter has it open\n") {
		t.Errorf("exit code %d\n%s%s\nwant first\n%s", got.Code, got.Stdout, got.Stderr, want)
	}
	// Another state's exporter would not get the file, nor the address.
	got = d.exporter(append(checking(sinks...), "--resources", "configmaps")...)
	for _, problem := range []string{
		"problem  listen on " + address + ": address already in use: choose another address with --listen, or with listen in the configuration\n",
		"problem  sink out: open file " + d.path("out") + ": in use by another process: stop it, or give each its own file\n",
	} {
		if !strings.Contains(got.Stdout, problem) {
			t.Errorf("exit code %d\n%s\nwant in it\n%s", got.Code, got.Stdout, problem)
		}
	}
	r.stopsWell()
}

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestCheckAsADocument has what the lines have.
func TestCheckAsADocument(t *testing.T) {
	d := newDesk(t)
	r := d.exporter(checking("--resources", "configmaps,foos", "--sink", "-", "-o", "json")...)
	var document struct {
		Problems int
		Findings []struct{ Result, Text string }
	}
	if err := json.Unmarshal([]byte(r.Stdout), &document); err != nil {
		t.Fatalf("%v in\n%s%s", err, r.Stdout, r.Stderr)
	}
	var lines strings.Builder
	for _, f := range document.Findings {
		lines.WriteString(f.Result + strings.Repeat(" ", 9-len(f.Result)) + f.Text + "\n")
	}
	text := d.exporter(checking("--resources", "configmaps,foos", "--sink", "-")...)
	if lines.String() != text.Stdout || document.Problems != 1 || r.Code != 2 || r.Stderr != "exporter: check found 1 problem\n" {
		t.Errorf("got %d problems, exit code %d, %s\n%s\nwant\n%s", document.Problems, r.Code, r.Stderr, &lines, text.Stdout)
	}
}
