// Package child runs programs that do not outlive the test which started them, however it ends.
package child

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
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

// StartLogged is Start of a command whose output is appended to the file.
func StartLogged(cmd *exec.Cmd, file string) (*Process, error) {
	log, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	return Start(cmd)
}

// FreePort is one of loopback that is free again after a stop: it is below those that operating systems give to
// outgoing connections.
func FreePort() (int, error) {
	for range 100 {
		port := 9000 + rand.IntN(11_000)
		if l, err := net.Listen("tcp4", Address(port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("find a free port: a hundred are taken")
}

// Address is that of a port of loopback.
func Address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// AwaitListener returns when the process listens at the port, or with an error when it ends or ctx does.
func (p *Process) AwaitListener(ctx context.Context, port int) error {
	return p.Await(ctx, func() bool {
		conn, err := net.Dial("tcp4", Address(port))
		return err == nil && conn.Close() == nil
	})
}

// Await returns when the process has reached something, or with an error when it ends or ctx does.
func (p *Process) Await(ctx context.Context, reached func() bool) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !reached() {
		select {
		case <-tick.C:
		case <-p.Exited:
			return p.Ended()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
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
