// Package badinput shows what a person reads who does something wrong: for each mistake the exact message of the real
// program, against a real API server and real brokers, and its exit code.
package badinput

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
