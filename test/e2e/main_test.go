package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/kubecdc/kubecdc/test/testcluster"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(brokerDirVariable); dir != "" {
		os.Exit(serveBroker(dir, os.Getenv(brokerPortVariable)))
	}
	testcluster.HearHangups()
	klog.SetLogger(logr.Discard()) // client-go tells of each connection that a killed server leaves
	code := m.Run()
	if build.dir != "" {
		os.RemoveAll(build.dir)
	}
	os.Exit(code)
}

// build is the exporter's binary, made by the first test that needs it.
var build struct {
	once sync.Once
	dir  string
	err  error
}

// exporterBinary returns the path of the exporter, built from the sources beside these tests.
func exporterBinary(t *testing.T) string {
	t.Helper()
	build.once.Do(func() {
		if build.dir, build.err = os.MkdirTemp("", "e2e-"); build.err == nil {
			build.err = buildExporter(filepath.Join(build.dir, "exporter"))
		}
	})
	if build.err != nil {
		t.Fatal(build.err)
	}
	return filepath.Join(build.dir, "exporter")
}

func buildExporter(path string) error {
	root := filepath.Join("..", "..")
	if err := lookAtSources(root); err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-o", path, "./cmd/exporter")
	cmd.Dir = root
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the exporter: %w\n%s", err, output)
	}
	return nil
}

// lookAtSources looks at every source of the exporter. The tests import none of them, and go test would call a result
// cached although the exporter has changed; it notes which files a test has looked at.
func lookAtSources(root string) error {
	for _, dir := range []string{"cmd", "internal", "go.mod"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && (strings.HasSuffix(path, ".go") || dir == "go.mod") {
				_, err = os.Stat(path)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("look at the exporter's sources: %w", err)
		}
	}
	return nil
}

// seed is what the test's random choices come from.
func seed(t *testing.T) uint64 {
	t.Helper()
	return uint64(number(t, "E2E_SEED", 1))
}

// kills is how often a test kills the exporter: the number of the environment, or else the test's own.
func kills(t *testing.T, usual, short int) int {
	t.Helper()
	return number(t, "E2E_KILLS", amount(usual, short))
}

// betweenCuts is how long connections live on average where a network is bad. On a machine that is busy with other tests
// a life of less than it takes to connect would test nothing.
func betweenCuts(t *testing.T) time.Duration {
	t.Helper()
	return time.Duration(number(t, "E2E_CUTS", 150)) * time.Millisecond
}

// restarts is how often a test restarts the API server.
func restarts(t *testing.T, usual, short int) int {
	t.Helper()
	return number(t, "E2E_RESTARTS", amount(usual, short))
}

// amount is the usual number, or the one for a short test.
func amount(usual, short int) int {
	if testing.Short() {
		return short
	}
	return usual
}

func number(t *testing.T, variable string, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%q is no number", variable, text)
	}
	return n
}
