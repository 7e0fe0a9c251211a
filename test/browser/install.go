// Package browser drives the status page in a real headless Chromium.
//
// Chromium is the machine's own, or comes from Debian's package chromium where apt-get can install it. Where neither is
// possible the tests say so in one line and are skipped; with CI=true they fail.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// installLimit bounds the download and the installation.
const installLimit = 10 * time.Minute

// install is looked for once.
var install struct {
	once sync.Once
	path string
	err  error
}

// Require returns the path of a Chromium, and skips the test where there is none, or fails it where CI=true.
func Require(tb testing.TB) string {
	tb.Helper()
	install.once.Do(func() { install.path, install.err = find(context.WithoutCancel(tb.Context())) })
	switch {
	case install.err == nil:
	case os.Getenv("CI") == "true":
		tb.Fatalf("%v; it is required (CI=true)", install.err)
	default:
		tb.Skip(install.err)
	}
	return install.path
}

func find(ctx context.Context) (string, error) {
	if path := lookUp(); path != "" {
		return path, nil
	}
	aptGet, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return "", fmt.Errorf("no Chromium here, and it is not root with apt-get that asks: install the package chromium")
	}
	ctx, cancel := context.WithTimeout(ctx, installLimit)
	defer cancel()
	for _, args := range [][]string{{"update"}, {"install", "--yes", "--no-install-recommends", "chromium"}} {
		cmd := exec.CommandContext(ctx, aptGet, args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if output, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("install Chromium: apt-get %s: %w: %s", args[0], err, lastOf(output))
		}
	}
	if path := lookUp(); path != "" {
		return path, nil
	}
	return "", fmt.Errorf("install Chromium: the package chromium brought no program of that name")
}

// lastOf is the end of what a program said.
func lastOf(output []byte) []byte { return output[max(0, len(output)-300):] }

func lookUp() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
