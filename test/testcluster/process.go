package testcluster

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/test/child"
)

const (
	// stopLimit is how long a process may take to stop before it is killed.
	stopLimit = 2 * time.Minute

	// tailBytes is how much of the log a failure shows: some twenty lines.
	tailBytes = 4 << 10
)

// process is one running devcluster.
type process struct {
	*child.Process
	log string // its file
}

// startProcess returns when the process says that it is ready. It logs to the file.
func startProcess(ctx context.Context, log, binary string, args ...string) (*process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start devcluster: %w", err)
	}
	defer file.Close()
	said, out, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start devcluster: %w", err)
	}
	cmd := exec.Command(binary, args...)
	cmd.Env = append([]string{"GOGC=400"}, os.Environ()...) // a start costs a seventh less CPU time
	cmd.Stdout, cmd.Stderr = out, file
	p := &process{log: log}
	p.Process, err = child.Start(cmd)
	out.Close()
	if err != nil {
		said.Close()
		return nil, fmt.Errorf("start devcluster: %w", err)
	}
	ready := make(chan struct{})
	go func() {
		defer said.Close()
		for lines := bufio.NewScanner(said); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "ready: ") {
				close(ready) // it says so once
			}
		}
	}()
	select {
	case <-ready:
		return p, nil
	case <-p.Exited:
		return nil, fmt.Errorf("start devcluster: %w: %s", p.Ended(), p.tail())
	case <-ctx.Done():
		p.Kill()
		return nil, fmt.Errorf("start devcluster: %w: %s", ctx.Err(), p.tail())
	}
}

// stop asks the process to end and says if it did not end well.
func (p *process) stop() error {
	if !p.Running() {
		return fmt.Errorf("stop devcluster: it had ended before: %w: %s", p.Ended(), p.tail())
	}
	if err := p.Terminate(stopLimit); err != nil {
		return fmt.Errorf("stop devcluster: %w: %s", err, p.tail())
	}
	if code := p.Cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("stop devcluster: exit code %d: %s", code, p.tail())
	}
	return nil
}

// tail is the end of the log, for the reader of an error message.
func (p *process) tail() string {
	text, _ := os.ReadFile(p.log) // the error is the news
	return fmt.Sprintf("last lines of %s:\n%s", p.log, text[max(0, len(text)-tailBytes):])
}
