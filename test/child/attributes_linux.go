package child

import "syscall"

// attributes keep a crashed or killed test from leaving a process behind. Ctrl-C in a terminal goes to the parent
// alone.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
