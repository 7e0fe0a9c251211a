package badinput

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var getOptions = metav1.GetOptions{}

// TestFileThatCannotBeWritten says the same in run and in check, and makes nothing.
func TestFileThatCannotBeWritten(t *testing.T) {
	d := newDesk(t)
	d.mkdir("dir")
	d.write("plain", "")
	for _, c := range []struct{ name, path, want string }{
		{"directory missing", "nope/out", "no such file or directory: create the directory"},
		{"directory", "dir", "is a directory: name a file in the directory"},
		{"file where a directory belongs", "plain/out", "not a directory: create the directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := d.path(c.path)
			d.exporter(usual("--resources", "configmaps", "--sink", "file://"+path)...).fails(t, 1, "open sink file: open file "+path+": "+c.want)
			d.checks(t, "file://"+path, 1, "problem  sink file: check file "+path+": "+c.want)
		})
	}
	if _, err := os.Stat(d.path("nope")); err == nil {
		t.Error("a directory was made")
	}
}

// TestDeviceIsNoFile: opening one could wait for ever.
func TestDeviceIsNoFile(t *testing.T) {
	d := newDesk(t)
	const want = `open file /dev/null: not a regular file: name a file, or "-" for standard output`
	d.exporter(usual("--resources", "configmaps", "--sink", "file:///dev/null")...).fails(t, 1, "open sink file: "+want)
	d.checks(t, "file:///dev/null", 1, "problem  sink file: "+want)
}

func TestFileOfAnotherUser(t *testing.T) {
	d := newDesk(t)
	d.write("out", "")
	for _, path := range []string{d.path("out"), d.path("new")} {
		const want = "permission denied: let the exporter's user read and write the file and its directory"
		r := d.exporterAsNobody(checking("--resources", "configmaps", "--sink", "file://"+path)...)
		state := "note     state none: it cannot be made on this host: mkdir .: permission denied: choose another state.dir, if the exporter is to run here\n"
		r.prints(t, 1, strings.Replace(d.checkedWell(), newState, state, 1)+"problem  sink file: check file "+path+": "+want+"\n", "exporter: check found 1 problem\n")
	}
}

func TestI10FileInUse(t *testing.T) {
	d := newDesk(t)
	path := d.path("out")
	r := d.started("--sink", "file://"+path)
	want := "open file " + path + ": in use by another process: stop it, or give each its own file"
	d.exporter(usual("--resources", "configmaps", "--sink", "file://"+path, "--state-dir", "other")...).fails(t, 1, "open sink file: "+want)
	r.stopsWell()
}
