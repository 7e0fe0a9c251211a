//go:build !linux

package testcluster

import "syscall"

// dieWithParent has no counterpart here: a killed test leaves its server running.
func dieWithParent() *syscall.SysProcAttr { return nil }
