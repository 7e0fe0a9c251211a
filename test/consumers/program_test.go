package consumers

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/test/child"
	"github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/maven"
	"github.com/kubecdc/kubecdc/test/program"
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

// built is the program under test.
var built = program.Build{Also: []string{"test/consumers/sdk"}}

func TestMain(m *testing.M) {
	code := m.Run()
	built.Remove()
	os.Exit(code)
}

// buildSDK makes the consumer of CloudEvents' SDK.
func buildSDK(ctx context.Context, path string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-o", path, ".")
	cmd.Dir, cmd.Env = "sdk", append(os.Environ(), "GOWORK=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the consumer of the SDK: %w\n%s", err, output)
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
