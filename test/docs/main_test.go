// Package docs runs every command of README.md and docs against a real API server and JetStream, and holds everything else
// on these pages that can be held: configurations, values, messages, programs, links, and the names of tests.
package docs

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/kubecdc/kubecdc/test/testcluster"
)

var shared testcluster.Shared

func TestMain(m *testing.M) {
	testcluster.HearHangups()
	code := shared.Main(m)
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

func binary(t *testing.T) string {
	t.Helper()
	build.once.Do(func() { build.dir, build.err = buildExporter() })
	if build.err != nil {
		t.Fatal(build.err)
	}
	return filepath.Join(build.dir, "exporter")
}

func buildExporter() (string, error) {
	dir, err := os.MkdirTemp("", "docs-")
	if err != nil {
		return "", err
	}
	if err := lookAtSources(); err != nil {
		return dir, err
	}
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "exporter"), "./cmd/exporter")
	cmd.Dir = root
	if output, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("build the exporter: %w\n%s", err, output)
	}
	return dir, nil
}

// lookAtSources looks at every file of the exporter: go test notes which files a test has looked at, and would
// otherwise call a result cached although the exporter has changed.
func lookAtSources() error {
	for _, dir := range []string{"cmd", "internal", "go.mod", "deploy", "Makefile"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && !strings.Contains(path, "testdata") {
				_, err = os.Stat(path)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("look at the sources: %w", err)
		}
	}
	return nil
}
