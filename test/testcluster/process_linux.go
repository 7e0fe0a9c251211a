package testcluster

import "syscall"

// dieWithParent keeps a crashed or killed test from leaving a server behind. Ctrl-C in a terminal goes to the parent
// alone, which stops the server when it is done with it.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
