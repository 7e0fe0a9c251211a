package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTestedVersionsAreTheTested: the table of docs/choosing.md names what the tests run.
func TestTestedVersionsAreTheTested(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", path))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	table := read("docs/choosing.md")
	for name, c := range map[string]struct{ file, version string }{
		"Kubernetes API server": {"test/devcluster/go.mod", `k8s\.io/kubernetes v(\S+)`},
		"Apache Kafka":          {"test/kafka/java/pom.xml", `<kafka\.version>([0-9.]+)</kafka\.version>`},
		"NATS server":           {"go.mod", `nats-io/nats-server/v2 v(\S+)`},
		"Helm":                  {"test/deploy/go.mod", `helm\.sh/helm/v4 v(\S+)`},
	} {
		found := regexp.MustCompile(c.version).FindStringSubmatch(read(c.file))
		if found == nil {
			t.Errorf("%s has no version of %s", c.file, name)
			continue
		}
		row := regexp.MustCompile(`(?m)^\| ` + name + `.*$`).FindString(table)
		if !strings.Contains(row, "| "+found[1]+" |") {
			t.Errorf("docs/choosing.md says %q of %s, and the tests run %s", row, name, found[1])
		}
	}
}
