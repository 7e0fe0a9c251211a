package program

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"
)

// Outcome is what a command that has ended left behind.
type Outcome struct {
	Code           int // of its exit
	Stdout, Stderr string
}

// Run runs a command, made by exec.CommandContext, to its end. One that is ended by a signal, or not within the limit,
// fails the test.
func Run(tb testing.TB, limit time.Duration, cmd *exec.Cmd) Outcome {
	tb.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	timer := time.AfterFunc(limit, func() { cmd.Cancel() })
	defer timer.Stop()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || cmd.ProcessState.ExitCode() < 0 {
		tb.Fatalf("run %q: %v\n%s", cmd.Args, err, stderr.String())
	}
	return Outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// Eventually waits for something that another process does.
func Eventually(tb testing.TB, limit time.Duration, what string, holds func() bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), limit)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			tb.Fatalf("waited %s until %s", limit, what)
		}
	}
}
