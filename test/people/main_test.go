// Package people tests the commands that people look with: verify and tail, against a real API server, JetStream and
// Kafka.
package people

import (
	"fmt"
	"os"
	"testing"

	"github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/program"
	"github.com/kubecdc/kubecdc/test/testcluster"
)

var (
	shared   testcluster.Shared
	brokers  kafka.Shared
	exporter program.Build
)

func TestMain(m *testing.M) {
	testcluster.HearHangups()
	code := shared.Main(m)
	if err := brokers.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	exporter.Remove()
	os.Exit(code)
}
