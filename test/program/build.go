// Package program is the exporter's binary for tests that run it: built once a package, and run to its end.
package program

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/kubecdc/kubecdc/test/filelock"
)

// root is the project's, from the directory of a package of tests.
var root = filepath.Join("..", "..")

// Build is the exporter, built from the sources by the first test of a package that asks for it:
//
//	var exporter program.Build
//
//	func TestMain(m *testing.M) { code := m.Run(); exporter.Remove(); os.Exit(code) }
type Build struct {
	Also []string // what else the tests depend on, below the project's root

	once sync.Once
	dir  string
	err  error
}

// Path returns the binary's, in a directory that other users may read: some tests run it as nobody.
func (b *Build) Path(tb testing.TB) string {
	tb.Helper()
	b.once.Do(func() { b.err = b.make() })
	if b.err != nil {
		tb.Fatal(b.err)
	}
	return filepath.Join(b.dir, "exporter")
}

// Remove removes what was built, if anything was.
func (b *Build) Remove() {
	if b.dir != "" {
		os.RemoveAll(b.dir)
	}
}

func (b *Build) make() (err error) {
	if b.dir, err = os.MkdirTemp("", "exporter-"); err != nil {
		return err
	}
	if err := os.Chmod(b.dir, 0o755); err != nil {
		return err
	}
	if err := lookAt(append([]string{"cmd", "internal", "go.mod"}, b.Also...)); err != nil {
		return err
	}
	binary, err := linked()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.dir, "exporter"), binary, 0o755)
}

// linked is the exporter. It is linked at one place for all packages: go build does nothing where what is there is of
// these sources.
func linked() (binary []byte, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(cache, "kubecdc", "exporter")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	unlock, err := filelock.Lock(context.Background(), path+".lock")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", path, "./cmd/exporter")
	cmd.Dir = root
	if output, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the exporter: %w\n%s", err, output)
	}
	return os.ReadFile(path)
}

// lookAt looks at every file that the tests depend on. They import none of them, and go test would call a result cached
// although the exporter has changed; it notes which files a test has looked at. What lies in testdata may come and go
// while other tests run.
func lookAt(paths []string) error {
	for _, path := range paths {
		err := filepath.WalkDir(filepath.Join(root, path), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && !strings.Contains(path, "testdata") {
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
