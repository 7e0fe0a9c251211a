package consumers

import "syscall"

// dieWithParent keeps a crashed or killed test from leaving processes behind.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
