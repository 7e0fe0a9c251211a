package consumers

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/test/child"
	"github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/maven"
)

//go:embed java
var javaFiles embed.FS

// flink is Apache Flink with our SQL job. Its versions before 2 run on Java 11 and later; Kafka needs 17 anyway.
func flink() *maven.Project {
	return &maven.Project{Name: "flink", Title: "Apache Flink", Sources: javaFiles, MinJava: 17}
}

// requireJava skips the test where there is no JDK or no Maven, or fails it where they are required.
func requireJava(t *testing.T) {
	t.Helper()
	kafka.RequireReal(t)
	if err := flink().Available(t.Context()); err != nil {
		if kafka.Required() {
			t.Fatalf("%v; it is required (CI=true or KUBECDC_REQUIRE_KAFKA=1)", err)
		}
		t.Skip(err)
	}
}

// programs are the paths of what the test runs.
type programs struct {
	exporter, sdk string
	flink         maven.Dir
}

// build makes the programs from the sources beside the tests.
func build(ctx context.Context, dir string) (programs, error) {
	p := programs{exporter: filepath.Join(dir, "exporter"), sdk: filepath.Join(dir, "sdk")}
	root := filepath.Join("..", "..")
	err1 := lookAtSources(filepath.Join(root, "cmd"), filepath.Join(root, "internal"), "sdk")
	err2 := goBuild(ctx, root, "./cmd/exporter", p.exporter)
	err3 := goBuild(ctx, "sdk", ".", p.sdk)
	var err4 error
	p.flink, err4 = flink().Install(ctx)
	return p, errors.Join(err1, err2, err3, err4)
}

func goBuild(ctx context.Context, dir, pkg, path string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-o", path, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s in %s: %w\n%s", pkg, dir, err, output)
	}
	return nil
}

// lookAtSources looks at the sources of what is built: the tests import none of them, and go test would call a result
// cached although they have changed.
func lookAtSources(dirs ...string) error {
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && (strings.HasSuffix(path, ".go") || strings.HasSuffix(path, ".mod")) {
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

// output runs a program to its end, and returns its lines.
func output(t *testing.T, command ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := child.Run(cmd); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, tail(stderr.String()))
	}
	return strings.Split(strings.TrimSuffix(stdout.String(), "\n"), "\n")
}

// tail is the end of a long text.
func tail(text string) string { return text[max(0, len(text)-8<<10):] }

// java is the command of one of our programs in a small JVM.
func java(d maven.Dir, args ...string) []string {
	return append([]string{
		"java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", d.Libs(),
	}, args...)
}
