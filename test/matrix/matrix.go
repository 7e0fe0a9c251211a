// Package matrix gives tests other versions of the servers than those that they are built with: make matrix runs a part
// with older ones. An environment variable names each. Without it a test runs what the project depends on.
//
// The programs are built from Go's module proxy, once, and kept in the user's cache.
package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/kubecdc/kubecdc/test/filelock"
)

// The variables, and what they may be.
const (
	KubernetesVariable = "KUBECDC_KUBERNETES" // 1.30.14
	KafkaVariable      = "KUBECDC_KAFKA"      // 3.9.2
	NATSVariable       = "KUBECDC_NATS"       // 2.10.27
)

// Kafka is the version that is asked for, "" for the project's own.
func Kafka() string { return os.Getenv(KafkaVariable) }

// APIServer is the path of the kube-apiserver that is asked for, "" for the project's own.
func APIServer(ctx context.Context) (string, error) {
	version := os.Getenv(KubernetesVariable)
	if version == "" {
		return "", nil
	}
	return (&program{name: "kube-apiserver", module: "k8s.io/kubernetes", path: "k8s.io/kubernetes/cmd/kube-apiserver", version: "v" + version}).cached(ctx)
}

// NATSServer is the path of the nats-server that is asked for, "" for the project's own.
func NATSServer(ctx context.Context) (string, error) {
	version := os.Getenv(NATSVariable)
	if version == "" {
		return "", nil
	}
	const module = "github.com/nats-io/nats-server/v2"
	return (&program{name: "nats-server", module: module, path: module, version: "v" + version}).cached(ctx)
}

// program is one of a module of another version than the project's.
type program struct{ name, module, path, version string }

// cached returns the binary, built if it was not before.
func (p *program) cached(ctx context.Context) (binary string, err error) {
	return filelock.Cached(ctx, p.name, p.version+"-"+runtime.Version(), func(partial string) error {
		if err := p.build(ctx, partial); err != nil {
			return fmt.Errorf("build %s %s: %w", p.name, p.version, err)
		}
		return nil
	})
}

func (p *program) build(ctx context.Context, binary string) error {
	dir, err := os.MkdirTemp("", p.name+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	requirements, err := p.goMod(ctx, dir)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(requirements), 0o600); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"get", p.path + "@" + p.version}, {"build", "-ldflags", p.linkFlags(), "-o", binary, p.path},
	} {
		if _, err := run(ctx, dir, args...); err != nil {
			return err
		}
	}
	return nil
}

var staged = regexp.MustCompile(`(?m)^\s*(k8s\.io/\S+) => \./staging/`)

// goMod is a module around the program. That of Kubernetes has its libraries beside it, which the proxy has as modules
// of their own: of v1.30.14 they are v0.30.14.
func (p *program) goMod(ctx context.Context, dir string) (string, error) {
	said, err := run(ctx, dir, "mod", "download", "-json", p.module+"@"+p.version)
	if err != nil {
		return "", err
	}
	var found struct{ GoMod string }
	if err := json.Unmarshal(said, &found); err != nil {
		return "", err
	}
	own, err := os.ReadFile(found.GoMod)
	if err != nil {
		return "", err
	}
	text := "module matrix\n\ngo 1.26.0\n"
	for _, match := range staged.FindAllSubmatch(own, -1) {
		text += fmt.Sprintf("\nreplace %s => %[1]s v0%s\n", match[1], strings.TrimPrefix(p.version, "v1"))
	}
	return text, nil
}

// linkFlags have the API server say its version: without them it calls itself v0.0.0.
func (p *program) linkFlags() string {
	parts := strings.Split(strings.TrimPrefix(p.version, "v"), ".")
	const at = "-X k8s.io/component-base/version."
	return fmt.Sprintf("-s -w %sgitVersion=%s %[1]sgitMajor=%[3]s %[1]sgitMinor=%[4]s", at, p.version, parts[0], parts[min(1, len(parts)-1)])
}

func run(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	said, err := cmd.Output()
	if err == nil {
		return said, nil
	}
	var problem string
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		problem = string(exit.Stderr[max(0, len(exit.Stderr)-2000):])
	}
	return nil, fmt.Errorf("go %s: %w: %s%s", args[0], errors.Join(err, ctx.Err()), problem, said)
}
