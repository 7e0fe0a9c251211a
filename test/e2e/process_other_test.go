//go:build !linux

package e2e

import "syscall"

// dieWithParent has no counterpart here: a killed test leaves its processes running.
func dieWithParent() *syscall.SysProcAttr { return nil }
