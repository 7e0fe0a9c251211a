// Package people tests the commands that people look with: verify and tail, against a real API server, JetStream and
// Kafka.
package people

import (
	"os"
	"testing"

	"github.com/kubecdc/kubecdc/test/program"
	"github.com/kubecdc/kubecdc/test/testcluster"
)

var (
	shared   testcluster.Shared
	exporter program.Build
)

func TestMain(m *testing.M) {
	testcluster.HearHangups()
	code := shared.Main(m)
	exporter.Remove()
	os.Exit(code)
}
