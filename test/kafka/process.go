package kafka

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// stopLimit is how long a broker may take for a controlled shutdown.
const stopLimit = time.Minute

// process is one running broker. Its output goes to a file.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended and err is set
	err    error
}

func startProcess(logFile string, command []string) (*process, error) {
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start broker: %w", err)
	}
	defer out.Close()
	p := &process{cmd: exec.Command(command[0], command[1:]...), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = dieWithParent()
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start broker: %w", err)
	}
	return p, nil
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

// kill ends the process at once, as a crash would, also a paused one.
func (p *process) kill() {
	p.cmd.Process.Kill() // fails only where the process has ended
	<-p.exited
}

// stop asks the process to end and says if it did not.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop broker: %w", err)
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(stopLimit):
		p.kill()
		return fmt.Errorf("stop broker: still running after %s, killed", stopLimit)
	}
}

// summary returns the last lines of a broker's log that warn or are part of a
// stack trace, then its very last lines, or why there are none.
func summary(file string) string {
	const trouble, last = 40, 5
	data, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	warned := slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
		return strings.Contains(l, "] INFO ")
	})
	shown := append(end(warned, trouble), "...")
	return strings.Join(append(shown, end(lines, last)...), "\n")
}

func end(lines []string, count int) []string { return lines[max(0, len(lines)-count):] }
