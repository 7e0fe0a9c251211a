package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/test/validate"
)

// exporter is the program under test: one command line that is started again and again.
type exporter struct {
	binary  string
	args    []string
	env     []string // besides that of the test
	sinks   []string // URLs
	logPath string
	listen  string // address of its metrics and status
	process *process
}

func (x *exporter) start(t *testing.T) {
	t.Helper()
	if x.runs() {
		t.Fatal("the exporter is running already")
	}
	args := slices.Clone(x.args)
	for _, url := range x.sinks {
		args = append(args, "--sink", url)
	}
	x.process = startProcess(t, x.logPath, x.env, x.binary, args...)
}

// configure makes the sinks be those of a list in YAML.
func (x *exporter) configure(t *testing.T, sinks string) {
	t.Helper()
	path := strings.TrimSuffix(x.logPath, ".log") + ".yaml"
	if err := os.WriteFile(path, []byte("sinks:\n"+sinks), 0o600); err != nil {
		t.Fatal(err)
	}
	if x.sinks = nil; !slices.Contains(x.args, path) {
		x.args = append(x.args, "--config", path)
	}
}

func (x *exporter) runs() bool { return x.process != nil && x.process.Running() }

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

// interrupt asks the exporter to stop soon after a kill. What the killed one had sent may still come, so it may leave
// records to the next start, if it says so.
func (x *exporter) interrupt(t *testing.T) {
	t.Helper()
	code, _, err := x.process.terminate(stopLimit)
	if said := x.lastLines(t); err != nil || code != 0 && !strings.Contains(said, leavesRest) {
		t.Fatalf("the exporter ended with code %d, %v, and does not say that %s:\n%s", code, err, leavesRest, said)
	}
}

// leavesRest is what an exporter says that leaves records.
const leavesRest = "the next start continues there"

// stopLimit is far above the exporter's own deadline of 20 s.
const stopLimit = 2 * time.Minute

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

// signal sends the exporter a signal: SIGSTOP freezes it, as a suspended machine would, and SIGCONT lets it go on.
func (x *exporter) signal(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := x.process.Cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// ask reads a path of the exporter's port. One that is paused, or that begins or ends just now, may say nothing.
func (x *exporter) ask(path string, within time.Duration) (status int, said string, err error) {
	client := http.Client{Timeout: within}
	answer, err := client.Get("http://" + x.listen + path)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}

// answers says whether the path is served well.
func (x *exporter) answers(path string) bool {
	status, _, err := x.ask(path, patience)
	return err == nil && status == http.StatusOK
}

// get reads a path of the running exporter's port.
func (x *exporter) get(t *testing.T, path string) string {
	t.Helper()
	status, said, err := x.ask(path, patience)
	if err != nil || status != http.StatusOK {
		t.Fatalf("get %s: %d, %v: %s; the exporter says:\n%s", path, status, err, said, x.lastLines(t))
	}
	if path == "/statusz" {
		if err := validate.Status([]byte(said)); err != nil {
			t.Error(err)
		}
	}
	return said
}

// withoutCluster takes the label that all series have out of them.
func withoutCluster(metrics string) string { return clusterLabel.ReplaceAllString(metrics, "$1") }

var clusterLabel = regexp.MustCompile(`(?m)^(\w+\{)cluster="[^"]*",?`)

// metric is the value of one series, such as `kubecdc_source_gaps_total{reason="gone",resource="pods"}`, 0 where there
// is none.
func (x *exporter) metric(t *testing.T, series string) float64 {
	t.Helper()
	for line := range strings.Lines(withoutCluster(x.get(t, "/metrics"))) {
		if text, found := strings.CutPrefix(strings.TrimSpace(line), series+" "); found {
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
	}
	return 0
}

// status is what /statusz says of one stream.
func (x *exporter) status(t *testing.T, stream string) streamStatus {
	t.Helper()
	return x.statuses(t).Streams[stream]
}

// sinkStatus is what /statusz says of one sink.
func (x *exporter) sinkStatus(t *testing.T, sink string) sinkStatus {
	t.Helper()
	return x.statuses(t).Sinks[sink]
}

func (x *exporter) statuses(t *testing.T) (all statuses) {
	t.Helper()
	if err := json.Unmarshal([]byte(x.get(t, "/statusz")), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

type statuses struct {
	Streams map[string]streamStatus
	Sinks   map[string]sinkStatus
	State   struct{ Log *struct{ LagSeconds float64 } }
}

type sinkStatus struct {
	LastError            string
	Asking               *struct{ LastError string }
	OldestUnackedSeconds float64
}

type streamStatus struct {
	State           string
	ResourceVersion string // the saved position
	LastError       string
	LastGap         struct{ Reason string }
}
