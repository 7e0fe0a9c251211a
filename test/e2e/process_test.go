package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/test/child"
)

// process is a child of the test.
type process struct{ *child.Process }

// startProcess starts a program whose output is appended to the file at logPath.
func startProcess(t *testing.T, logPath string, env []string, name string, args ...string) *process {
	t.Helper()
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), env...)
	p, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return &process{p}
}

// terminate asks the process to end, and returns its exit code and how long it took.
func (p *process) terminate(within time.Duration) (code int, took time.Duration, err error) {
	began := time.Now()
	if err := p.Terminate(within); err != nil {
		<-p.Exited
		return 0, 0, fmt.Errorf("stop process %d, which has ended with %v: %w", p.Cmd.Process.Pid, p.Cmd.ProcessState, err)
	}
	return p.Cmd.ProcessState.ExitCode(), time.Since(began), nil
}
