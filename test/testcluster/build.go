package testcluster

import (
	"bytes"
	"context"
	"crypto/sha256"
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

// build returns the path of the devcluster program, built from test/devcluster
// if these very sources were not built before. The first build compiles
// Kubernetes and takes minutes. It tells of its progress; told may be nil.
func build(ctx context.Context, told func(packages int)) (string, error) {
	source, err := sourceDir()
	if err != nil {
		return "", err
	}
	sum, err := sourceSum(source)
	if err != nil {
		return "", err
	}
	return filelock.Cached(ctx, "devcluster", sum, func(partial string) error {
		flags, err := linkFlags(source)
		if err != nil {
			return err
		}
		args := []string{"build", "-v", "-mod=readonly", "-ldflags", flags, "-o", partial}
		for _, most := range []string{"k8s.io/...", "go.etcd.io/..."} { // without DWARF they compile in four fifths of the time
			args = append(args, "-gcflags="+most+"=-dwarf=0")
		}
		cmd := exec.CommandContext(ctx, "go", append(args, ".")...)
		cmd.Dir = source
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
		output := &packages{told: told}
		cmd.Stdout, cmd.Stderr = output, output
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("build devcluster in %s: %w\n%s", source, errors.Join(err, ctx.Err()), output.text.Bytes())
		}
		return nil
	})
}

// toldEvery is how many packages are compiled until the next word.
const toldEvery = 100

// packages counts the lines of go build -v.
type packages struct {
	told  func(packages int)
	text  bytes.Buffer
	lines int
}

func (p *packages) Write(part []byte) (int, error) {
	for range bytes.Count(part, []byte("\n")) {
		if p.lines++; p.told != nil && p.lines%toldEvery == 0 {
			p.told(p.lines)
		}
	}
	return p.text.Write(part)
}

// linkFlags gives the API server the version that the module depends on.
// Without them it calls itself v0.0.0.
func linkFlags(source string) (string, error) {
	mod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("read version of Kubernetes: %w", err)
	}
	found := regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v(\d+)\.(\d+)\.\S+)$`).FindSubmatch(mod)
	if found == nil {
		return "", fmt.Errorf("read version of Kubernetes: no k8s.io/kubernetes in %s", filepath.Join(source, "go.mod"))
	}
	const at = "-X k8s.io/component-base/version."
	return fmt.Sprintf("-s -w %sgitVersion=%s %[1]sgitMajor=%[3]s %[1]sgitMinor=%[4]s", at, found[1], found[2], found[3]), nil
}

// sourceSum names a build by all that goes into it.
func sourceSum(source string) (string, error) {
	files, err := filepath.Glob(filepath.Join(source, "*.go"))
	if err != nil {
		return "", fmt.Errorf("list sources of devcluster: %w", err)
	}
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, f := range append(files, filepath.Join(source, "go.mod"), filepath.Join(source, "go.sum")) {
		data, err := os.ReadFile(f)
		if err != nil {
			return "", fmt.Errorf("read sources of devcluster: %w", err)
		}
		fmt.Fprintf(sum, "%s %d\n%s", filepath.Base(f), len(data), data)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:8]), nil
}

// sourceDir finds test/devcluster from the working directory, which go test
// sets to the package's.
func sourceDir() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find sources of devcluster: %w", err)
	}
	const module = "module github.com/kubecdc/kubecdc\n"
	for dir := start; ; dir = filepath.Dir(dir) {
		if mod, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && strings.HasPrefix(string(mod), module) {
			return filepath.Join(dir, "test", "devcluster"), nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find sources of devcluster: no go.mod of kubecdc above %s", start)
		}
	}
}
