//go:build !linux

package child

import "syscall"

// protect has no counterpart here: a killed test leaves its processes running.
func protect(*syscall.SysProcAttr) {}
