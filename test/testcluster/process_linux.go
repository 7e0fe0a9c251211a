package testcluster

import "syscall"

// dieWithParent keeps a crashed or killed test from leaving a server behind.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
