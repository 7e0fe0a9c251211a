// Package docs runs every command of README.md and docs against a real API server and JetStream, and holds everything
// else on these pages that can be held: configurations, values, messages, programs, links, and the names of tests.
package docs

import (
	"os"
	"testing"

	"github.com/kubecdc/kubecdc/test/program"
	"github.com/kubecdc/kubecdc/test/testcluster"
)

var (
	shared   testcluster.Shared
	exporter = program.Build{Also: []string{"deploy", "Makefile"}}
)

func TestMain(m *testing.M) {
	if url := os.Getenv(natsVariable); url != "" && len(os.Args) == 5 && os.Args[1] == "nats" && os.Args[2] == "req" {
		os.Exit(ask(url, os.Args[3], os.Args[4]))
	}
	if len(os.Args) > 1 && os.Args[1] == "kcat" {
		os.Exit(kcat(os.Args[2:]))
	}
	testcluster.HearHangups()
	code := shared.Main(m)
	exporter.Remove()
	os.Exit(code)
}
