package checkpoint

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestI5KillLeavesAWholeBatch kills a process at random instants of committing, and some while it starts and recovers.
// Every state that is left opens, holds one batch whole, and none that is older than the last one acknowledged.
func TestI5KillLeavesAWholeBatch(t *testing.T) {
	kills := 30
	if testing.Short() {
		kills = 5
	}
	dir, random, last := t.TempDir(), rand.New(rand.NewPCG(5, 6)), 0
	for i := range kills {
		acked := killSomewhere(t, dir, random)
		s, err := Open(context.Background(), dir, Options{Logger: quiet()})
		must(t, err)
		n, err := wholeBatch(s)
		if err != nil {
			t.Fatalf("after kill %d: %v", i, err)
		}
		if n < max(acked, last) {
			t.Fatalf("after kill %d the state holds batch %d, but %d was acknowledged", i, n, max(acked, last))
		}
		last = n
		must(t, s.Close())
	}
	t.Logf("%d kills, %d batches", kills, last)
}

// killSomewhere starts a process that commits and kills it, one in four while it starts, the others after some batches
// and a moment. It returns the last batch that the process said was durable.
func killSomewhere(t *testing.T, dir string, random *rand.Rand) (acked int) {
	t.Helper()
	cmd := child(t, "batches", dir)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	must(t, cmd.Start())
	lines := bufio.NewScanner(stdout)
	if random.IntN(4) > 0 {
		for range 1 + random.IntN(60) {
			acked = nextNumber(t, lines, &stderr, acked)
		}
	}
	<-time.After(time.Duration(random.IntN(20_000)) * time.Microsecond)
	must(t, cmd.Process.Kill())
	for lines.Scan() {
		acked, err = strconv.Atoi(lines.Text())
		must(t, err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Exited() {
		t.Fatalf("the child ended by itself: %v %s", err, stderr.String())
	}
	return acked
}

func nextNumber(t *testing.T, lines *bufio.Scanner, stderr *strings.Builder, before int) int {
	t.Helper()
	if !lines.Scan() {
		t.Fatalf("the child ended by itself: %s", stderr)
	}
	n, err := strconv.Atoi(lines.Text())
	if err != nil || before > 0 && n != before+1 {
		t.Fatalf("the child says %q after batch %d", lines.Text(), before)
	}
	return n
}

func TestI10SecondProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	cmd := child(t, "hold", dir)
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	_, err = io.ReadFull(stdout, make([]byte, len("open\n")))
	must(t, err)

	_, err = Open(context.Background(), dir, Options{Logger: quiet()})
	want := "open state " + dir + ": in use by process " + strconv.Itoa(cmd.Process.Pid) + ": stop it, or choose another state.dir"
	var inUse *InUseError
	if !errors.As(err, &inUse) || inUse.PID != cmd.Process.Pid || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if err := Discard(dir); !errors.As(err, &inUse) {
		t.Errorf("Discard of a state in use returns %v", err)
	}
	must(t, stdin.Close())
	must(t, cmd.Wait())
	open(t, dir)
}

// TestI5FatalEndsTheProcess: where Pebble cannot go on, the process ends with one line that says so, and the state
// opens again.
func TestI5FatalEndsTheProcess(t *testing.T) {
	dir := t.TempDir()
	cmd := child(t, "fatal", dir)
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
	var inUse *InUseError
	if !errors.As(err, &inUse) || inUse.PID != os.Getpid() {
		t.Fatalf("the second Open in one process returns %v", err)
	}
	must(t, s.Close())
	must(t, s.Close())
	open(t, dir)
}
