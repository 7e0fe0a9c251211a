package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestWorkflowsAreValid as actionlint knows GitHub's rules. It is run as a program: it wants versions of libraries that
// others here cannot have.
func TestWorkflowsAreValid(t *testing.T) {
	lint := exec.CommandContext(t.Context(), "go", append([]string{"run", "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"}, workflows(t)...)...)
	if output, err := lint.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

// TestWorkflowsMayDoLittle: who takes over an action's tag, or sends a pull request, gets no right and no secret.
func TestWorkflowsMayDoLittle(t *testing.T) {
	pinned := regexp.MustCompile(`@[0-9a-f]{40} # v[0-9.]+$`)
	for _, file := range workflows(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(text), "\n") {
			if strings.Contains(line, "uses:") && !pinned.MatchString(line) {
				t.Errorf("%s: %s: name the action by its commit, with its version behind it", file, strings.TrimSpace(line))
			}
		}
		var workflow struct {
			Permissions map[string]string
			On          map[string]any
		}
		if err := yaml.Unmarshal(text, &workflow); err != nil {
			t.Fatal(err)
		}
		if len(workflow.Permissions) != 1 || workflow.Permissions["contents"] != "read" {
			t.Errorf("%s: what all jobs may do is %v, want contents: read", file, workflow.Permissions)
		}
		if _, privileged := workflow.On["pull_request_target"]; privileged {
			t.Errorf("%s: pull_request_target gives rights to code of others", file)
		}
	}
}

func workflows(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml"))
	if err != nil || len(files) < 4 {
		t.Fatalf("workflows are %v: %v", files, err)
	}
	return files
}
