package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// exporter is the program under test: one command line that is started again and again.
type exporter struct {
	binary  string
	args    []string
	sinks   []string // URLs
	logPath string
	process *process
}

func (x *exporter) start(t *testing.T) {
	t.Helper()
	if x.process != nil && x.process.running() {
		t.Fatal("the exporter is running already")
	}
	args := slices.Clone(x.args)
	for _, url := range x.sinks {
		args = append(args, "--sink", url)
	}
	x.process = startProcess(t, x.logPath, nil, x.binary, args...)
}

// stop asks the exporter to end. It must have delivered everything then.
func (x *exporter) stop(t *testing.T) {
	t.Helper()
	code, _, err := x.process.terminate(stopLimit)
	if err != nil {
		t.Fatalf("%v\n%s", err, x.lastLines(t))
	}
	if said := "everything that was read is delivered and saved"; code != 0 || !strings.Contains(x.lastLines(t), said) {
		t.Fatalf("the exporter ended with code %d, want 0 and %q in its log:\n%s", code, said, x.lastLines(t))
	}
}

// stopLimit is above the exporter's own deadline of 20 s.
const stopLimit = 30 * time.Second

func (x *exporter) log(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(x.logPath)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// lastLines is the end of the log, for a failure's text.
func (x *exporter) lastLines(t *testing.T) string {
	t.Helper()
	const most = 25
	lines := strings.Split(strings.TrimSpace(x.log(t)), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
