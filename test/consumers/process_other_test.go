//go:build !linux

package consumers

import "syscall"

// dieWithParent has no counterpart here: a killed test leaves its processes running.
func dieWithParent() *syscall.SysProcAttr { return nil }
