package child

import "syscall"

// protect keeps a crashed or killed test from leaving a process behind. Ctrl-C in a terminal goes to the parent alone.
func protect(attributes *syscall.SysProcAttr) {
	attributes.Pdeathsig, attributes.Setpgid = syscall.SIGKILL, true
}
