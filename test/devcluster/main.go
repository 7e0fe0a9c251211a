// Command devcluster runs a real Kubernetes API server on its own etcd, on
// 127.0.0.1 and from one binary, for tests and for trying things out.
//
// It is a cluster without nodes and without controllers: objects are stored,
// validated, watched and expired as anywhere else, but nothing reconciles them.
// Everything it needs to come back after a stop or a kill -9 is in --data-dir.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes. A clean stop, also one by a signal, is exitOK.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal stops cleanly; with the handler gone, a second one ends
	// the process at once.
	context.AfterFunc(ctx, restore)
	os.Exit(execute(ctx, os.Args[1:]))
}

func execute(ctx context.Context, args []string) int {
	console := &console{out: os.Stdout, err: os.Stderr}
	cmd := newCommand(console)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(console.err, "devcluster: %v\n%s", err, console.logTail())
	if _, wrong := errors.AsType[usageError](err); wrong {
		return exitUsage
	}
	return exitFailed
}
