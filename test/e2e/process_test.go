package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// process is a child of the test that does not outlive it.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended
}

// startProcess starts a program whose output is appended to the file at logPath.
func startProcess(t *testing.T, logPath string, env []string, name string, args ...string) *process {
	t.Helper()
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p := &process{cmd: exec.Command(name, args...), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = dieWithParent()
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// run owns the process from start to end, on one thread: the kernel takes the end of the thread that started a child
// for the end of its parent.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	_ = p.cmd.Wait() // how it ended is in its ProcessState
	close(p.exited)
}

// kill ends the process as kill -9 does. It does nothing to one that has ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// terminate asks the process to end, and returns its exit code and how long it took.
func (p *process) terminate(within time.Duration) (code int, took time.Duration, err error) {
	began := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, 0, fmt.Errorf("stop process %d: %w", p.cmd.Process.Pid, err)
	}
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode(), time.Since(began), nil
	case <-time.After(within):
		return 0, 0, fmt.Errorf("stop process %d: still running after %s", p.cmd.Process.Pid, within)
	}
}

// running says whether the process has not ended.
func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}
