// Package python runs programs in Python for tests, with libraries that are installed for the test.
package python

import (
	"os"
	"os/exec"
	"testing"
)

// Command is Python with the arguments and with libraries of PyPI. A test that cannot install them is skipped.
func Command(tb testing.TB, libraries []string, arguments ...string) *exec.Cmd {
	tb.Helper()
	dir := tb.TempDir()
	install := exec.CommandContext(tb.Context(), "python3",
		append([]string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", dir}, libraries...)...)
	if output, err := install.CombinedOutput(); err != nil {
		tb.Skipf("%v cannot be installed with Python's pip: %v: %.500s", libraries, err, output)
	}
	cmd := exec.CommandContext(tb.Context(), "python3", arguments...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir)
	return cmd
}
