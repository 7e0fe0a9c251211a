//go:build !linux

package child

import "syscall"

// attributes have no counterpart here: a killed test leaves its processes running.
func attributes() *syscall.SysProcAttr { return nil }
