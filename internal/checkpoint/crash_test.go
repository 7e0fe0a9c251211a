package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestI5FatalEndsTheProcess: where Pebble cannot go on, the process ends with one line that says so, and the state
// opens again.
func TestI5FatalEndsTheProcess(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CHECKPOINT_CHILD="+dir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("the child ended with %v, want exit code 1:\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 1 || !strings.Contains(lines[0], "level=ERROR") || !strings.Contains(lines[0], "input/output error") {
		t.Errorf("the child said:\n%s\nwant one line with the cause", out)
	}
	if n, err := wholeBatch(open(t, dir)); err != nil || n > 1 {
		t.Errorf("the state holds batch %d, %v", n, err)
	}
}

func TestI10LockOutlivesItsFile(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	_, err := Open(context.Background(), dir, Options{Logger: quiet()})
	want := fmt.Sprintf("open state %s: in use by process %d: stop it, or give this exporter a state.dir and sinks of its own", dir, os.Getpid())
	var inUse *InUseError
	if !errors.As(err, &inUse) || inUse.PID != os.Getpid() || err.Error() != want {
		t.Fatalf("error %v, want %s", err, want)
	}
	if err := Discard(dir); !errors.As(err, &inUse) {
		t.Errorf("Discard of a state in use returns %v", err)
	}
	must(t, s.Close())
	must(t, s.Close())
	open(t, dir)
}
