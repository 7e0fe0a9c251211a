package deploy

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/test/program"
)

// exporter is a running exporter.
type exporter struct {
	*program.Exporter
	t *testing.T
}

// start runs the exporter, whose metrics are served on a port that it chooses.
func start(t *testing.T, args ...string) *exporter {
	t.Helper()
	args = append([]string{"run", "--listen", "127.0.0.1:0", "--log-level", "info"}, args...)
	dir := t.TempDir()
	return &exporter{program.Start(t, exec.Command(exporterBinary(t), args...), dir, filepath.Join(dir, "log")), t}
}

// stop asks it to end, which it must do well.
func (x *exporter) stop() { x.Stop(x.t) }

// logs waits for a line with all of the texts.
func (x *exporter) logs(texts ...string) string {
	x.t.Helper()
	var found string
	eventually(x.t, "the exporter logs "+strings.Join(texts, " ")+"; it says:\n"+x.Said(), func() bool {
		for line := range strings.Lines(x.Said()) {
			if containsAll(line, texts) {
				found = line
				return true
			}
		}
		return false
	})
	return found
}

func containsAll(line string, texts []string) bool {
	for _, text := range texts {
		if !strings.Contains(line, text) {
			return false
		}
	}
	return true
}

// address is where its metrics are served.
func (x *exporter) address() string {
	x.t.Helper()
	return regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(x.logs("serving metrics and status"))[1]
}

// get reads a path of its port.
func (x *exporter) get(path string) []byte {
	x.t.Helper()
	request, err := http.NewRequestWithContext(x.t.Context(), http.MethodGet, "http://"+x.address()+path, nil)
	if err != nil {
		x.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		x.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		x.t.Fatalf("get %s: %s, %v", path, answer.Status, err)
	}
	return body
}

// command runs another of its commands to its end.
func command(t *testing.T, args ...string) (output string, code int) {
	t.Helper()
	binary := exporterBinary(t) // built by the first test that asks for it, which may take longer than the command may
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// lineWith waits until the file has a line with all of the texts.
func lineWith(t *testing.T, path string, texts ...string) {
	t.Helper()
	eventually(t, path+" has "+strings.Join(texts, " "), func() bool { return hasLine(t, path, texts...) })
}

func hasLine(t *testing.T, path string, texts ...string) bool {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		if containsAll(lines.Text(), texts) {
			return true
		}
	}
	return false
}
