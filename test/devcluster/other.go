package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// runOther runs another kube-apiserver than the one in this program, until ctx ends. It stays on one thread: the kernel
// takes the end of the thread that started a child for the end of its parent.
func runOther(ctx context.Context, binary string, flags []string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, binary, flags...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = os.Stdout, os.Stderr, endsWithParent()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = apiServerStopLimit
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil // it was asked to, or it could not stop: its state is etcd's
	}
	return fmt.Errorf("run %s: it ended: %w", binary, err)
}
