package deploy

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// image is the exporter's binary as the Dockerfile makes it, made by the first test that needs it.
var image struct {
	once sync.Once
	dir  string
	err  error
}

// exporterBinary is the exporter, built by the Dockerfile's own command from the sources that it copies.
func exporterBinary(t *testing.T) string {
	t.Helper()
	image.once.Do(func() {
		if image.dir, image.err = os.MkdirTemp("", "deploy-"); image.err == nil {
			image.err = buildAsImage(root, image.dir)
		}
	})
	if image.err != nil {
		t.Fatal(image.err)
	}
	return filepath.Join(image.dir, "exporter")
}

// stages are those of the Dockerfile.
func stages() ([]instructions.Stage, error) {
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		return nil, err
	}
	parsed, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	all, _, err := instructions.Parse(parsed.AST, nil)
	return all, err
}

// buildCommand is the Dockerfile's line that makes the binary.
func buildCommand() (string, error) {
	all, err := stages()
	if err != nil {
		return "", err
	}
	for _, command := range all[0].Commands {
		if run, ok := command.(*instructions.RunCommand); ok && strings.Contains(strings.Join(run.CmdLine, " "), "go build") {
			return strings.Join(run.CmdLine, " "), nil
		}
	}
	return "", fmt.Errorf("find go build in the Dockerfile: there is none")
}

// buildAsImage runs it on the sources below dir, and puts the binary into out.
func buildAsImage(dir, out string) error {
	line, err := buildCommand()
	if err != nil {
		return err
	}
	cmd := exec.Command("sh", "-ec", strings.ReplaceAll(line, "/out/", out+"/"))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TARGETOS="+runtime.GOOS, "TARGETARCH="+runtime.GOARCH, "VERSION=devel", "GOWORK=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the exporter as the Dockerfile does: %w\n%s", err, output)
	}
	return nil
}

// TestDockerfile: two stages, the second without a root user, each image named so exactly that its digest can be added.
func TestDockerfile(t *testing.T) {
	all, err := stages()
	if err != nil || len(all) != 2 {
		t.Fatalf("%d stages: %v", len(all), err)
	}
	var names []string
	for _, command := range all[1].Commands {
		names = append(names, strings.ToLower(command.Name()))
		if user, ok := command.(*instructions.UserCommand); ok && user.User != "65532:65532" {
			t.Errorf("user %s", user.User)
		}
	}
	for _, want := range []string{"user", "entrypoint", "copy"} {
		if !slices.Contains(names, want) {
			t.Errorf("the last stage has no %s", want)
		}
	}
	for _, arg := range regexp.MustCompile(`(?m)^ARG \w+_IMAGE=(.*)$`).FindAllStringSubmatch(read(t, "Dockerfile"), -1) {
		if !strings.Contains(arg[1], ":") || strings.HasSuffix(arg[1], ":latest") {
			t.Errorf("image %s is not pinned", arg[1])
		}
	}
}

// TestImageHasTheCompilerOfTheModule, not one that is older than its go.mod.
func TestImageHasTheCompilerOfTheModule(t *testing.T) {
	want := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))[1]
	if got := regexp.MustCompile(`golang:(\d+\.\d+)`).FindStringSubmatch(read(t, "Dockerfile"))[1]; got != want {
		t.Errorf("the image has Go %s, the module wants %s", got, want)
	}
}

// TestBinaryIsReproducible: the sources that the Dockerfile copies are enough, and built elsewhere, without a
// repository around them, they give the same bytes.
func TestBinaryIsReproducible(t *testing.T) {
	first := exporterBinary(t)
	elsewhere, out := t.TempDir(), t.TempDir()
	for _, name := range []string{"cmd", "internal"} {
		if err := os.CopyFS(filepath.Join(elsewhere, name), os.DirFS(filepath.Join(root, name))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		if err := os.WriteFile(filepath.Join(elsewhere, name), []byte(read(t, name)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := buildAsImage(elsewhere, out); err != nil {
		t.Fatal(err)
	}
	second := filepath.Join(out, "exporter")
	if a, b := sum(t, first), sum(t, second); a != b {
		t.Errorf("built in two places: %s, %s", a, b)
	}
	binary, err := elf.Open(second)
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	if libraries, err := binary.ImportedLibraries(); err != nil || len(libraries) > 0 || binary.Section(".interp") != nil {
		t.Errorf("the binary is not static: %v, %v", libraries, err)
	}
}

func sum(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, trace := range []string{root, filepath.Dir(path), "vcs.revision"} {
		if absolute, err := filepath.Abs(trace); err == nil && bytes.Contains(content, []byte(absolute)) || bytes.Contains(content, []byte("vcs.revision")) {
			t.Errorf("the binary has %s in it", trace)
		}
	}
	return fmt.Sprintf("%x", sha256.Sum256(content))
}

// TestImageHasNoServerInside: exporter dev is not for the image, and says so; what only it needs is no part of the
// binary.
func TestImageHasNoServerInside(t *testing.T) {
	binary := exporterBinary(t)
	said, err := exec.Command(binary, "dev", "--nats-listen", "127.0.0.1:0").CombinedOutput()
	if err == nil || !strings.Contains(string(said), "there is none in this binary") {
		t.Errorf("exporter dev: %v, %s", err, said)
	}
	if content, err := os.ReadFile(binary); err != nil || bytes.Contains(content, []byte("nats-server/v2/server.(*Server)")) {
		t.Errorf("a NATS server is in the binary: %v", err)
	}
}
