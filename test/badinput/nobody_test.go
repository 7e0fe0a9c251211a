package badinput

import (
	"os"
	"syscall"
)

// nobody is the user of exporterAsNobody.
func (d *desk) nobody() int {
	if os.Getuid() != 0 {
		return os.Getuid()
	}
	return 65534
}

// exporterAsNobody runs the program as a user who may not write to the desk: root may write everywhere.
func (d *desk) exporterAsNobody(args ...string) result {
	d.t.Helper()
	cmd := d.command(d.t.Context(), args)
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	} else {
		d.readOnly()
	}
	return d.finish(cmd)
}

// readOnly takes the right to write from all that is on the desk, until the test ends.
func (d *desk) readOnly() {
	for _, name := range append(d.files(), ".") {
		if err := os.Chmod(d.path(name), 0o555); err != nil {
			d.t.Fatal(err)
		}
		d.t.Cleanup(func() { os.Chmod(d.path(name), 0o755) })
	}
}
