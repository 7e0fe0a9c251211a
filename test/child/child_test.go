package child

import (
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEndsOfAProcess(t *testing.T) {
	for _, c := range []struct {
		name, script string
		end          func(*Process) error
		code         int
	}{
		{"by itself", "exit 3", func(p *Process) error { <-p.Exited; return nil }, 3},
		{"killed", "sleep 100", func(p *Process) error { p.Kill(); return nil }, -1},
		{"asked", "trap 'exit 4' TERM; echo ready; while :; do sleep 0.01; done", func(p *Process) error { return p.Terminate(2 * time.Minute) }, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", c.script)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			p, err := Start(cmd)
			if err != nil {
				t.Fatal(err)
			}
			if c.name == "asked" {
				if _, err := out.Read(make([]byte, 10)); err != nil { // it has set its trap
					t.Fatal(err)
				}
			}
			if err := c.end(p); err != nil || p.Running() || p.Err == nil || cmd.ProcessState.ExitCode() != c.code {
				t.Errorf("ended with %v, code %d, want %d; running: %t, %v", p.Err, cmd.ProcessState.ExitCode(), c.code, p.Running(), err)
			}
			p.Kill() // does nothing now
		})
	}
	if _, err := Start(exec.Command("/no/such/program")); err == nil {
		t.Error("a program that is not there was started")
	}
}

func TestOneThatDoesNotListenIsKilled(t *testing.T) {
	cmd := exec.Command("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.01; done")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := p.Terminate(50 * time.Millisecond); err == nil || p.Running() {
		t.Errorf("got %v, running: %t", err, p.Running())
	}
}
