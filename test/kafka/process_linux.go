package kafka

import "syscall"

// dieWithParent keeps a crashed or killed test from leaving a JVM behind. Ctrl-C in a terminal goes to the parent alone.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
