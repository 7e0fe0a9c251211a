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
	"slices"
	"strings"
	"time"
)

const (
	modulePath = "github.com/kubecdc/kubecdc"

	// keepBuilds is how long a binary of other sources stays in the cache after
	// its last use. One weighs a hundred megabytes.
	keepBuilds = 7 * 24 * time.Hour
)

// Build returns the path of the devcluster program, built from test/devcluster
// if these very sources were not built before. The first build compiles
// Kubernetes and takes minutes; test binaries that need it at the same time wait
// for one of them to do it.
func Build(ctx context.Context) (string, error) { return build(ctx, nil) }

// build tells of its progress; told may be nil.
func build(ctx context.Context, told func(packages int)) (string, error) {
	source, err := sourceDir()
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache for devcluster: %w", err)
	}
	cache = filepath.Join(cache, "kubecdc")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("create cache for devcluster: %w", err)
	}
	sum, err := sourceSum(source)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(cache, "devcluster-"+sum)
	if cached(binary) {
		return binary, nil
	}
	if err := (&builder{source, binary, told}).once(ctx); err != nil {
		return "", err
	}
	return binary, nil
}

// builder makes the binary of the sources.
type builder struct {
	source, binary string
	told           func(packages int)
}

// once builds under a lock that all test binaries of this user share.
func (b *builder) once(ctx context.Context) error {
	unlock, err := lock(ctx, filepath.Join(filepath.Dir(b.binary), "devcluster.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if cached(b.binary) {
		return nil
	}
	if err := b.build(ctx); err != nil {
		return err
	}
	prune(b.binary)
	return nil
}

// cached reports whether binary is there, and marks it as used.
func cached(binary string) bool {
	now := time.Now()
	return os.Chtimes(binary, now, now) == nil
}

// build goes through a temporary name: a build that is cut short leaves nothing
// that looks finished.
func (b *builder) build(ctx context.Context) error {
	flags, err := linkFlags(b.source)
	if err != nil {
		return err
	}
	partial := b.binary + ".partial"
	cmd := exec.CommandContext(ctx, "go", "build", "-v", "-mod=readonly", "-ldflags", flags, "-o", partial, ".")
	cmd.Dir = b.source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	output := &packages{told: b.told}
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build devcluster in %s: %w\n%s", b.source, errors.Join(err, ctx.Err()), output.text.Bytes())
	}
	if err := os.Rename(partial, b.binary); err != nil {
		return fmt.Errorf("build devcluster: %w", err)
	}
	return nil
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
	const version = "k8s.io/component-base/version."
	return fmt.Sprintf("-s -w -X %sgitVersion=%s -X %sgitMajor=%s -X %sgitMinor=%s",
		version, found[1], version, found[2], version, found[3]), nil
}

// sourceSum names a build by all that goes into it.
func sourceSum(source string) (string, error) {
	files, err := filepath.Glob(filepath.Join(source, "*.go"))
	if err != nil {
		return "", fmt.Errorf("list sources of devcluster: %w", err)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_test.go") })
	files = append(files, filepath.Join(source, "go.mod"), filepath.Join(source, "go.sum"))
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return "", fmt.Errorf("read sources of devcluster: %w", err)
		}
		fmt.Fprintf(sum, "%s %d\n%s", filepath.Base(f), len(data), data)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:8]), nil
}

// prune removes builds of other sources that nobody has used for a while.
func prune(binary string) {
	builds, _ := filepath.Glob(filepath.Join(filepath.Dir(binary), "devcluster-*"))
	for _, b := range builds {
		if info, err := os.Stat(b); err == nil && time.Since(info.ModTime()) > keepBuilds {
			os.Remove(b)
		}
	}
}

// sourceDir finds test/devcluster from this file, or, in a binary built with
// -trimpath, from the working directory, which go test sets to the package's.
func sourceDir() (string, error) {
	var starts []string
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		starts = append(starts, filepath.Dir(file))
	}
	if dir, err := os.Getwd(); err == nil {
		starts = append(starts, dir)
	}
	for _, dir := range starts {
		if root, ok := moduleRoot(dir); ok {
			return filepath.Join(root, "test", "devcluster"), nil
		}
	}
	return "", fmt.Errorf("find sources of devcluster: no go.mod of %s above %s", modulePath, strings.Join(starts, " or "))
}

func moduleRoot(dir string) (string, bool) {
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(mod, []byte("module "+modulePath+"\n")) {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}
