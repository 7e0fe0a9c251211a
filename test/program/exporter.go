package program

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/test/child"
)

// stopLimit is how long an exporter may take to stop on a busy machine.
const stopLimit = 2 * time.Minute

// Exporter is one that was started, with its state in a directory and its log in a file.
type Exporter struct {
	*child.Process
	state, log string
}

// Start runs the exporter, which is stopped at the test's end at the latest. The log is appended to the file.
func Start(tb testing.TB, cmd *exec.Cmd, state, log string) *Exporter {
	tb.Helper()
	process, err := child.StartLogged(cmd, log)
	if err != nil {
		tb.Fatal(err)
	}
	x := &Exporter{process, state, log}
	tb.Cleanup(func() {
		if x.Running() {
			x.Stop(tb)
		}
		if tb.Failed() {
			tb.Logf("the exporter said:\n%s", x.Said())
		}
	})
	return x
}

// Stop ends the exporter, which must have delivered everything.
func (x *Exporter) Stop(tb testing.TB) {
	tb.Helper()
	if err := errors.Join(x.Terminate(stopLimit), x.Err); err != nil {
		tb.Errorf("the exporter ended with %v", err)
	}
}

// Said is what is in the log.
func (x *Exporter) Said() string {
	text, _ := os.ReadFile(x.log) // it was made at the start
	return string(text)
}

// Address is where the exporter listens, "" before it does.
func (x *Exporter) Address() string {
	text, _ := os.ReadFile(filepath.Join(x.state, "address"))
	address, _, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	return address
}

// Get is what the exporter answers at the path, 0 as long as it does not.
func (x *Exporter) Get(path string) (status int, text string) {
	answer, err := http.Get("http://" + x.Address() + path)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, ""
	}
	return answer.StatusCode, string(body)
}

// Ready says whether the exporter says that everything has started.
func (x *Exporter) Ready() bool {
	status, _ := x.Get("/readyz")
	return status == http.StatusOK
}
