package main

import "syscall"

// endsWithParent lets no child outlive a program that is killed.
func endsWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
