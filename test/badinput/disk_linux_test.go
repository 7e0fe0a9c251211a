package badinput

import (
	"os"
	"regexp"
	"syscall"
	"testing"
)

// fullDisk has the free space in it, which is not the same each time.
var fullDisk = regexp.MustCompile(`^commit state state: only \d+ MiB free, 64 MiB needed: free space or enlarge the volume; nothing is lost, saving continues when there is space$`)

// fullLetters has the letter's id in it, too.
var fullLetters = regexp.MustCompile(`^keep dead letter [0-9a-f]{20} in letters/bus: only \d+ MiB free, 64 MiB needed: free space or enlarge the volume; nothing is lost, the sink continues when there is space$`)

// smallDisk mounts a file system of so many bytes, or skips the test.
func (d *desk) smallDisk(name, size string) {
	d.t.Helper()
	d.mkdir(name)
	if err := syscall.Mount("tmpfs", d.path(name), "tmpfs", 0, "size="+size); err != nil {
		d.t.Skipf("a small file system cannot be mounted: %v", err)
	}
	d.t.Cleanup(func() {
		if err := syscall.Unmount(d.path(name), syscall.MNT_DETACH); err != nil {
			d.t.Error(err)
		}
	})
}

// growDisk gives the small disk another size.
func (d *desk) growDisk(name, size string) {
	d.t.Helper()
	if err := syscall.Mount("tmpfs", d.path(name), "tmpfs", syscall.MS_REMOUNT, "size="+size); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) allocate(name string, bytes int64) {
	d.t.Helper()
	f, err := os.Create(d.path(name))
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Fallocate(int(f.Fd()), 0, 0, bytes); err != nil {
		d.t.Fatal(err)
	}
}

func TestFullDiskIsFoundAtTheStart(t *testing.T) {
	d := newDesk(t)
	d.smallDisk("state", "32m")
	d.exporter(again()...).fails(t, 1, "open state state: only 31 MiB free, 64 MiB needed: free space or enlarge the volume; nothing is lost, start again when there is space")
}

// TestI5FullDiskStopsSavingUntilThereIsSpace: it is said once, on /statusz, too, and nobody has to restart anything.
func TestI5FullDiskStopsSavingUntilThereIsSpace(t *testing.T) {
	d := newDesk(t)
	d.smallDisk("state", "96m")
	r := d.started("--sink", "file://"+d.path("out.ndjson"))
	eventually(t, "the first snapshot is saved", func() bool { return r.status().Streams["configmaps"].ResourceVersion != "" })
	d.allocate("state/filler", 60<<20)
	namespace := newNamespace(t)
	createConfigMap(t, namespace, "unsaved")
	r.logs("state not saved; retrying")
	d.delivers("out.ndjson", "/namespaces/"+namespace+"/configmaps/unsaved")
	if said := r.status().State.LastError; !fullDisk.MatchString(said) {
		t.Errorf("/statusz says %q", said)
	}
	if err := os.Remove(d.path("state/filler")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the state is saved", func() bool { return r.status().State.LastError == "" })
	r.logs(`level=INFO msg="state saved again" for=`)
	if code, n := r.stop(), r.times("state not saved"); code != 0 || n != 1 {
		t.Errorf("exit code %d, said %d times:\n%s", code, n, r.out)
	}
}

// TestI4FullDiskKeepsTheSinkWaiting for space, and nothing is lost.
func TestI4FullDiskKeepsTheSinkWaiting(t *testing.T) {
	d, namespace := narrowed(t, ", deadLetter: {dir: letters}")
	d.smallDisk("letters", "32m")
	r := d.runs()
	createLarge(t, namespace, "huge", 20_000)
	r.logs(`msg="dead letter cannot be kept; the sink waits and retries" sink=bus error="keep dead letter `)
	if said := r.status().Sinks["bus"].LastError; !fullLetters.MatchString(said) {
		t.Errorf("/statusz says %q", said)
	}
	d.growDisk("letters", "128m")
	r.logs(`msg="record rejected; a gap record stands in its place" sink=bus`)
	if list := d.exporter("deadletter", "list", "--dir", "letters"); list.Code != 0 || !listTable.MatchString(list.Stdout) {
		t.Errorf("exit code %d: %s%s", list.Code, list.Stdout, list.Stderr)
	}
	r.stopsWell()
}
