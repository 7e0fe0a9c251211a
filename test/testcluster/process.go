package testcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// stopLimit is how long a process may take to stop before it is killed.
const stopLimit = 2 * time.Minute

// process is one running devcluster.
type process struct {
	cmd    *exec.Cmd
	output *output
	exited chan struct{} // closed when it has ended and err is set
	err    error
}

// startProcess returns when the process says that it is ready.
func startProcess(ctx context.Context, binary string, args ...string) (*process, error) {
	p := &process{
		cmd:    exec.Command(binary, args...),
		output: &output{ready: make(chan struct{})},
		exited: make(chan struct{}),
	}
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	p.cmd.SysProcAttr = dieWithParent()
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start devcluster: %w", err)
	}
	select {
	case <-p.output.ready:
		return p, nil
	case <-p.exited:
		return nil, fmt.Errorf("start devcluster: %w: %s", p.err, p.output)
	case <-ctx.Done():
		p.kill()
		return nil, fmt.Errorf("start devcluster: %w: %s", ctx.Err(), p.output)
	}
}

// run owns the process from start to end, on one thread: the kernel takes the
// end of the thread that started a child for the end of its parent.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	if p.err = p.cmd.Wait(); p.err == nil {
		p.err = errors.New("it stopped by itself")
	}
	close(p.exited)
}

// kill ends the process at once, as a crash would.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.exited
}

// stop asks the process to end and says if it did not end well.
func (p *process) stop() error {
	select {
	case <-p.exited:
		return fmt.Errorf("stop devcluster: it had ended before: %w: %s", p.err, p.output)
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop devcluster: %w", err)
	}
	select {
	case <-p.exited:
	case <-time.After(stopLimit):
		p.kill()
		return fmt.Errorf("stop devcluster: still running after %s, killed: %s", stopLimit, p.output)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("stop devcluster: exit code %d: %s", code, p.output)
	}
	return nil
}

// output keeps what a process prints, which is little, and spots the line that
// says it is ready.
type output struct {
	ready chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
	done bool
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(b)
	if !o.done && isReady(o.text.Bytes()) {
		o.done = true
		close(o.ready)
	}
	return len(b), nil
}

func isReady(text []byte) bool {
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("ready: ")) && bytes.HasSuffix(line, []byte("\n")) {
			return true
		}
	}
	return false
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
