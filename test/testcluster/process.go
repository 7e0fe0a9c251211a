package testcluster

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/test/child"
)

// stopLimit is how long a process may take to stop before it is killed.
const stopLimit = 2 * time.Minute

// process is one running devcluster.
type process struct {
	*child.Process
	output *output
}

// startProcess returns when the process says that it is ready.
func startProcess(ctx context.Context, binary string, args ...string) (*process, error) {
	cmd, out := exec.Command(binary, args...), &output{ready: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = out, out
	started, err := child.Start(cmd)
	if err != nil {
		return nil, fmt.Errorf("start devcluster: %w", err)
	}
	p := &process{started, out}
	select {
	case <-p.output.ready:
		return p, nil
	case <-p.Exited:
		return nil, fmt.Errorf("start devcluster: %w: %s", p.Ended(), p.output)
	case <-ctx.Done():
		p.Kill()
		return nil, fmt.Errorf("start devcluster: %w: %s", ctx.Err(), p.output)
	}
}

// stop asks the process to end and says if it did not end well.
func (p *process) stop() error {
	if !p.Running() {
		return fmt.Errorf("stop devcluster: it had ended before: %w: %s", p.Ended(), p.output)
	}
	if err := p.Terminate(stopLimit); err != nil {
		return fmt.Errorf("stop devcluster: %w: %s", err, p.output)
	}
	if code := p.Cmd.ProcessState.ExitCode(); code != 0 {
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
