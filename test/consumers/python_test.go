package consumers

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// python is a command that runs the script with the libraries of PyPI, which are installed for the test.
func python(t *testing.T, script string, libraries ...string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	install := exec.CommandContext(t.Context(), "python3",
		append([]string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", dir}, libraries...)...)
	if output, err := install.CombinedOutput(); err != nil {
		t.Skipf("%v cannot be installed with Python's pip: %v: %.500s", libraries, err, output)
	}
	cmd := exec.CommandContext(t.Context(), "python3", filepath.Join("python", script))
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir)
	return cmd
}
