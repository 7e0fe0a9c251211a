package consumers

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// python is a command that runs the script with the library of PyPI, which is installed for the test.
func python(t *testing.T, script, library string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	install := exec.CommandContext(t.Context(), "python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", dir, library)
	if output, err := install.CombinedOutput(); err != nil {
		t.Skipf("%s cannot be installed with Python's pip: %v: %.500s", library, err, output)
	}
	cmd := exec.CommandContext(t.Context(), "python3", filepath.Join("python", script))
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir)
	return cmd
}
