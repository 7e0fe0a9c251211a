package e2e

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"

	"github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/matrix"
	"github.com/kubecdc/kubecdc/test/testcluster"
)

// TestTheServersAreOfTheVersionsOfTheTable asks each server itself: it is what the environment asks for, and
// docs/choosing.md has it.
func TestTheServersAreOfTheVersionsOfTheTable(t *testing.T) {
	table, err := os.ReadFile(filepath.Join("..", "..", "docs", "choosing.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		variable string
		runs     func(*testing.T) string
	}{
		"Kubernetes API server": {matrix.KubernetesVariable, apiServerVersion},
		"Apache Kafka":          {matrix.KafkaVariable, kafkaVersion},
		"NATS server":           {matrix.NATSVariable, natsVersion},
	} {
		t.Run(name, func(t *testing.T) {
			runs := strings.TrimPrefix(c.runs(t), "v")
			if asked := cmp.Or(os.Getenv(c.variable), runs); asked != runs {
				t.Errorf("it is of version %s, and %s is asked for with %s", runs, asked, c.variable)
			}
			row := regexp.MustCompile(`(?m)^\| ` + name + `.*$`).FindString(string(table))
			if !strings.Contains(row, "| "+runs+" |") {
				t.Errorf("it is of version %s, and docs/choosing.md says %q", runs, row)
			}
		})
	}
}

func apiServerVersion(t *testing.T) string {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(testcluster.New(t, testcluster.Options{}).RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	info, err := client.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	return info.GitVersion
}

// kafkaVersion is what the broker says of itself in its log.
func kafkaVersion(t *testing.T) string {
	t.Helper()
	kafka.RequireReal(t)
	c := kafka.Start(t, kafka.Options{})
	log, err := os.ReadFile(c.Log(c.NodeIDs()[0]))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`Kafka version: (\S+)`).FindSubmatch(log)
	if found == nil {
		t.Fatal("the broker's log does not say its version")
	}
	return string(found[1])
}

func natsVersion(t *testing.T) string {
	t.Helper()
	return newBroker(t, t.TempDir()).open().nc.ConnectedServerVersion()
}
