// Package child runs programs that do not outlive the test which started them, however it ends.
package child

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Process is a program that was started.
type Process struct {
	Cmd    *exec.Cmd
	Exited chan struct{} // closed when it has ended and Err is set
	Err    error         // of exec.Cmd.Wait; nil is exit code 0
}

// Start starts the command. Ctrl-C in a terminal goes to the test alone, which stops the program when it is done with
// it.
func Start(cmd *exec.Cmd) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	protect(cmd.SysProcAttr)
	p := &Process{Cmd: cmd, Exited: make(chan struct{})}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// run owns the process from start to end, on one thread: the kernel takes the end of the thread that started a child
// for the end of its parent.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.Cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.Err = p.Cmd.Wait()
	close(p.Exited)
}

// Running says whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.Exited:
		return false
	default:
		return true
	}
}

// Kill ends the process as kill -9 does, also a paused one. It does nothing to one that has ended.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill() // fails only where the process has ended
	<-p.Exited
}

// Terminate asks the process to end. It kills one that still runs after the limit, and says so; otherwise how it ended
// is in its Cmd.ProcessState.
func (p *Process) Terminate(limit time.Duration) error {
	if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.Exited:
		return nil
	case <-timer.C:
		p.Kill()
		return fmt.Errorf("still running after %s, killed", limit)
	}
}

// Ended says why a process that should go on has ended. It is never nil.
func (p *Process) Ended() error {
	if p.Err == nil {
		return errors.New("it stopped by itself")
	}
	return p.Err
}

// Run runs the command to its end.
func Run(cmd *exec.Cmd) error {
	p, err := Start(cmd)
	if err != nil {
		return err
	}
	<-p.Exited
	return p.Err
}
