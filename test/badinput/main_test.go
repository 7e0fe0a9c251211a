// Package badinput shows what a person reads who does something wrong: for each mistake the exact message of the real
// program, against a real API server and real brokers, and its exit code.
package badinput

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
	exporter program.Build

	// brokers is one with all its doors, where alice may log in and do nothing at first.
	brokers = kafka.Shared{Options: kafka.Options{
		Listeners: []kafka.Listener{kafka.SASL, kafka.TLS}, Users: map[string]string{"alice": password}, ACLs: true,
	}}
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
