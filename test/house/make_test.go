package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMakeTestRunsEverythingAndFails: a failure hides none that come after it, and none is forgotten. The go command is
// a stand-in that notes its directory and fails where it is told to.
func TestMakeTestRunsEverythingAndFails(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	deploy := filepath.Join(root, "test", "deploy")
	for _, failing := range []string{"none", root, deploy} {
		dir := t.TempDir()
		standIn := "#!/bin/sh\necho \"$PWD\" >> " + dir + "/ran\n[ \"$PWD\" != \"" + failing + "\" ]\n"
		if err := os.WriteFile(filepath.Join(dir, "go"), []byte(standIn), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("make", "-C", root, "test")
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "MAKEFLAGS=")
		output, err := cmd.CombinedOutput()
		if (err == nil) != (failing == "none") {
			t.Errorf("the tests of %s fail, and make ends with %v:\n%s", failing, err, output)
		}
		ran, err := os.ReadFile(filepath.Join(dir, "ran"))
		in := strings.Fields(string(ran))
		slices.Sort(in) // they run beside each other
		in = slices.Compact(in)
		if want := []string{root, deploy}; err != nil || !slices.Equal(in, want) {
			t.Errorf("the tests of %s fail: tests were run in %q, want %q: %v", failing, in, want, err)
		}
	}
}
