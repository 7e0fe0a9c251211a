//go:build !linux

package kafka

import "syscall"

// dieWithParent has no counterpart here: a killed test leaves its JVMs running.
func dieWithParent() *syscall.SysProcAttr { return nil }
